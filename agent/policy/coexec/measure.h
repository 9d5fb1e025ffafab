/* How fast the members of a plan get on: from the end of one launch to that of a later one, as the
 * agent sees them. */
#pragma once

#include "policy/coexec/coexec.h"

struct coexec_memory;
struct run_queue;

/* The clock of a level, which stands while higher levels run. */
uint64_t coexec_clock(const struct run_queue *queue);

/* A configuration has changed: begins the wait for the end of queued launches, which have the
 * former numbers of workers. */
void coexec_settle(struct coexec_plan *plan, uint64_t now);
bool coexec_is_settled(const struct coexec_plan *plan, uint64_t now);
/* Changes to @next. The queued launches of a slow client last longer than those of a fast one. So
 * the fast one is told later, and the launches of all change at the same time. Else one client
 * would have few workers already while the other still has few, and a part of the SMs would stay
 * empty. */
void coexec_change(struct coexec_plan *plan, const struct coexec_configuration *next, uint64_t now);
/* At each look: tells the clients that are due (coexec_change()). */
void coexec_tell_late(const struct coexec_plan *plan, uint64_t now);
/* How many workers member @i may have now. */
uint8_t coexec_workers(const struct coexec_plan *plan, unsigned i);
/* A measurement begins. */
void coexec_measure(struct coexec_plan *plan, uint64_t now);
/* At each look: notes ends of launches. */
void coexec_look_at_ends(const struct coexec_plan *plan, uint64_t now);
bool coexec_is_measured(const struct coexec_plan *plan, uint64_t now);
/* The speed that the last measurement found. */
double coexec_speed(const struct coexec_client *client);
/* What was measured so far excludes a speed-up of @least. @rates: the highest that each member can
 * have. */
bool coexec_is_below(const struct coexec_plan *plan, double least, uint64_t now,
		     double rates[COEXEC_MOST]);
/* Each member's rate. Returns the sum, the speed-up. */
double coexec_rates(const struct coexec_plan *plan, double rates[COEXEC_MOST]);
/* If the client has another kernel now, takes what is remembered of that one. Else the kernel must
 * be measured alone. @memory: may be NULL. */
void coexec_recognise(struct coexec_client *client, struct coexec_memory *memory);
/* The only member was measured: notes its speed alone. */
void coexec_note_alone(struct coexec_plan *plan, struct coexec_memory *memory);
