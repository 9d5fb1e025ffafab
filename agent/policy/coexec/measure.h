/* How fast the members of a plan get on: from the end of one launch to that of a later one, as the
 * agent sees them. */
#pragma once

#include "policy/coexec/coexec.h"

struct coexec_memory;
struct run_queue;

/* The clock of a level, which stands while higher levels run. */
uint64_t coexec_clock(const struct run_queue *queue);

/* Launches that are queued have the former number of workers: waits for their end. */
void coexec_settle(struct coexec_plan *plan, uint64_t now);
bool coexec_is_settled(const struct coexec_plan *plan, uint64_t now);
/* From one measured configuration to @next. The queued launches of a slow client last longer than
 * those of a fast one. So the fast one is told later, and the launches of all change at the same
 * time. Between, a client with few workers would be beside another one with few. */
void coexec_change(struct coexec_plan *plan, const struct coexec_configuration *next, uint64_t now);
/* At each look: tells those whose time it is. */
void coexec_tell_late(const struct coexec_plan *plan, uint64_t now);
/* How many workers member @i may have now. */
uint8_t coexec_workers(const struct coexec_plan *plan, unsigned i);
/* A measurement begins. */
void coexec_measure(struct coexec_plan *plan, uint64_t now);
/* At each look. */
void coexec_look_at_ends(const struct coexec_plan *plan, uint64_t now);
bool coexec_is_measured(const struct coexec_plan *plan, uint64_t now);
/* ns of work in a ns. */
double coexec_speed(const struct coexec_client *client);
/* What was measured so far excludes a speed-up of @least. @rates: what each member's rate is at
 * most. */
bool coexec_is_below(const struct coexec_plan *plan, double least, uint64_t now,
		     double rates[COEXEC_MOST]);
/* Each member's speed against that alone. Returns the sum. */
double coexec_rates(const struct coexec_plan *plan, double rates[COEXEC_MOST]);
/* If the client has another kernel now, takes what is remembered of that one. Else the kernel must
 * be measured alone. @memory: may be NULL. */
void coexec_recognise(struct coexec_client *client, struct coexec_memory *memory);
/* The only member was measured: that is its speed alone. */
void coexec_note_alone(struct coexec_plan *plan, struct coexec_memory *memory);
