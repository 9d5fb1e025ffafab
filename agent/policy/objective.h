/* Latency objectives of pods, and whether they are met. An objective limits the time from a launch
 * to the start of its work, for a client that was idle before. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/account.h"

#define OBJECTIVE_TIGHT    5000000ull     /* ns: below it others' kernels must leave at once */
#define OBJECTIVE_MIN      100000ull      /* ns: about the length of a switch */
#define OBJECTIVE_MAX      10000000000ull /* ns */
#define OBJECTIVE_EXPECTED "a duration from 100us to 10s, like 2ms"
#define OBJECTIVE_WINDOW   1000 /* starts between two verdicts */
#define OBJECTIVE_PARTS    1000 /* one of so many starts may be late */

/* @ns: 0: there is none. */
static inline bool objective_is_tight(uint64_t ns)
{
	return ns && ns < OBJECTIVE_TIGHT;
}

/* False: @text is no objective. */
bool objective_parse(const char *text, uint64_t *ns);

/* The starts of one tenant on one GPU. */
struct objective {
	uint64_t starts, late;
	uint64_t judged_starts, judged_late; /* as of the last verdict */
	bool missed;                         /* that verdict */
};

/* Counts the starts in a client's account since the last call. A libweir that does not count starts
 * reports how often and for how long work was held back. At most wait time / objective of these
 * starts were late, and that many are counted, of all launches. */
void objective_count(struct objective *objective, uint64_t ns, const struct account *before,
		     const struct account *after);
void objective_add(struct objective *sum, const struct objective *more);
/* True: a new verdict, which differs from the one before. */
bool objective_judge(struct objective *objective);
