#include "dra/publisher.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "dra/slice.h"
#include "inventory.h"
#include "weir/api-client.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define ANSWER_SHOWN 300

static void send_next(struct publisher *publisher);

static void end_round(struct publisher *publisher)
{
	uint64_t pause = publisher->eager ? PUBLISHER_SOON : PUBLISHER_PERIOD;

	if (publisher->eager)
		publisher->eager--;
	publisher->sending = false;
	loop_timer_set(&publisher->timer, publisher->again ? 0 : pause, 0);
	publisher->again = false;
}

static void fail(struct publisher *publisher, const char *what, long status, const char *body)
{
	log_limited(LOG_WARNING, 10, "%s: HTTP status %ld %.*s", what, status, ANSWER_SHOWN, body);
	/* A node that was created again has another UID. */
	publisher->node_uid[0] = '\0';
	publisher->eager += !publisher->eager;
	end_round(publisher);
}

static void published(void *userdata, long status, const char *body, size_t size)
{
	struct publisher *publisher = userdata;

	(void)size;
	if (status != 200 && status != 201) {
		fail(publisher, "the API server does not take a ResourceSlice", status, body);
		return;
	}
	if (strstr(body, "\"uuid\"") && !strstr(body, "allowMultiple") && !publisher->warned) {
		log_warning("the API server lacks the feature DRAConsumableCapacity: claims get "
			    "GPUs as a whole");
		publisher->warned = true;
	}
	publisher->at++;
	send_next(publisher);
}

static void deleted(void *userdata, long status, const char *body, size_t size)
{
	struct publisher *publisher = userdata;

	(void)size;
	if (status == 200) {
		publisher->at++;
		send_next(publisher);
	} else if (status == 404) {
		if (!publisher->told)
			log_info("published the GPUs of node %s", publisher->config->dra.node);
		publisher->told = true;
		end_round(publisher);
	} else {
		fail(publisher, "the API server does not delete a ResourceSlice", status, body);
	}
}

static int send_slice(struct publisher *publisher)
{
	cleanup(freep) char *text = slice_format(publisher->config, publisher->inventory,
						 publisher->at, publisher->node_uid);
	cleanup(freep) char *path =
		slice_path(publisher->config, publisher->at, "?fieldManager=weir&force=true");

	return text && path
		       ? api_client_send(publisher->api, "PATCH", path, text, published, publisher)
		       : error_origin(-ENOMEM);
}

static int delete_slice(struct publisher *publisher)
{
	cleanup(freep) char *path = slice_path(publisher->config, publisher->at, "");

	return path ? api_client_send(publisher->api, "DELETE", path, NULL, deleted, publisher)
		    : error_origin(-ENOMEM);
}

static void send_next(struct publisher *publisher)
{
	int r = publisher->at < publisher->inventory->node.n_gpus ? send_slice(publisher)
								  : delete_slice(publisher);

	if (r < 0)
		end_round(publisher);
}

static void got_node(void *userdata, long status, const char *body, size_t size)
{
	struct publisher *publisher = userdata;
	cJSON *json = status == 200 ? cJSON_ParseWithLength(body, size) : NULL;
	const cJSON *meta = cJSON_GetObjectItemCaseSensitive(json, "metadata");
	const char *uid = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(meta, "uid"));

	if (uid && strlen(uid) < sizeof(publisher->node_uid)) {
		memcpy(publisher->node_uid, uid, strlen(uid) + 1);
		send_next(publisher);
	} else {
		fail(publisher, "the API server does not show the node", status, body);
	}
	cJSON_Delete(json);
}

static int get_node(struct publisher *publisher)
{
	cleanup(freep) char *path = NULL;

	if (asprintf(&path, "/api/v1/nodes/%s", publisher->config->dra.node) < 0) {
		path = NULL;
		return error_origin(-ENOMEM);
	}
	return api_client_send(publisher->api, "GET", path, NULL, got_node, publisher);
}

static void on_timer(struct loop_timer *timer)
{
	struct publisher *publisher = container_of(timer, struct publisher, timer);

	publisher->at = 0;
	publisher->sending = true;
	if (publisher->node_uid[0])
		send_next(publisher);
	else if (get_node(publisher) < 0)
		end_round(publisher);
}

void publisher_look(struct publisher *publisher)
{
	publisher->eager = PUBLISHER_EAGER;
	publisher->told = false;
	publisher->again = publisher->sending;
	if (!publisher->sending)
		loop_timer_set(&publisher->timer, 0, 0);
}

int publisher_init(struct publisher *publisher, struct loop *loop, struct api_client *api,
		   const struct config *config, const struct inventory *inventory)
{
	*publisher = (struct publisher){.config = config, .inventory = inventory, .api = api};
	return loop_timer_init(&publisher->timer, loop, on_timer);
}

void publisher_deinit(struct publisher *publisher)
{
	loop_timer_deinit(&publisher->timer);
}
