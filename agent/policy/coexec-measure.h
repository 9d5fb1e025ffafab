/* How fast the members of a plan get on: from the end of one launch to that of a later one, as the
 * agent sees them. */
#pragma once

#include "policy/coexec.h"

/* Launches that are queued have the former number of workers: waits for their end. */
void coexec_settle(struct coexec_plan *plan, uint64_t now);
bool coexec_is_settled(const struct coexec_plan *plan, uint64_t now);
/* A measurement begins. */
void coexec_measure(struct coexec_plan *plan, uint64_t now);
/* At each look. */
void coexec_look_at_ends(const struct coexec_plan *plan, uint64_t now);
bool coexec_is_measured(const struct coexec_plan *plan, uint64_t now);
/* ns of work in a ns. */
double coexec_speed(const struct coexec_client *client);
/* Each member's speed against that alone. Returns the sum. */
double coexec_rates(const struct coexec_plan *plan, double rates[COEXEC_MOST]);
