/* Latency objectives: what a pod may want, and whether it gets it. An objective is a limit for the
 * time from a launch to the start of the work, for a client that had nothing to do before. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/account.h"

#define OBJECTIVE_MIN      100000ull      /* ns; a switch alone takes that long */
#define OBJECTIVE_MAX      10000000000ull /* ns */
#define OBJECTIVE_EXPECTED "a duration from 100us to 10s, like 2ms"
#define OBJECTIVE_WINDOW   1000 /* starts after which it is judged */
#define OBJECTIVE_PARTS    1000 /* of so many starts one may be late */

/* False: no such objective. */
bool objective_parse(const char *text, uint64_t *ns);

/* How it went, of one tenant on one GPU. */
struct objective {
	uint64_t starts, late;
	uint64_t judged_starts, judged_late; /* as of the last verdict */
	bool missed;                         /* that verdict */
};

/* What a client's account grew by since the last look. A libweir that does not count starts says
 * how often and how long work was held back: no more than wait time / objective of these can have
 * been late, so many are taken to be, of all launches. */
void objective_count(struct objective *objective, uint64_t ns, const struct account *before,
		     const struct account *after);
void objective_add(struct objective *sum, const struct objective *more);
/* True: there is a new verdict, and it differs from the one before. */
bool objective_judge(struct objective *objective);
