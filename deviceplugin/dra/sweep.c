#include "dra/sweep.h"

#include <stdio.h>
#include <string.h>

#include "config.h"
#include "dra/claim-parse.h"
#include "dra/ledger.h"
#include "dra/preparer.h"
#include "weir/api-client.h"
#include "weir/base.h"
#include "weir/log.h"

static void look(struct sweep *sweep);

static void got_claim(void *userdata, long status, const char *body, size_t size)
{
	struct sweep *sweep = userdata;
	bool known = status == 200 || status == 404;

	if (known && claims_find(&sweep->ledger->claims, sweep->uid) &&
	    !claim_lives(status, body, size, sweep->uid, sweep->config->dra.node)) {
		log_info("claim %s is gone; forgotten", sweep->uid);
		ledger_remove(sweep->ledger, sweep->uid);
		/* The last claim of the list took its place. */
	} else {
		sweep->at++;
	}
	look(sweep);
}

static void look(struct sweep *sweep)
{
	const struct claims *claims = &sweep->ledger->claims;

	sweep->running = false;
	if (sweep->at >= claims->n)
		return;
	const struct claim *claim = claims->list[sweep->at];
	cleanup(freep) char *path = preparer_path(claim->namespace_, claim->name);
	memcpy(sweep->uid, claim->uid, sizeof(sweep->uid));
	sweep->running =
		path && api_client_send(sweep->api, "GET", path, NULL, got_claim, sweep) == 0;
}

void sweep_start(struct sweep *sweep)
{
	if (sweep->running)
		return;
	sweep->at = 0;
	look(sweep);
}
