/* Persistent and resumable launches: workers on several threads, demands and quotas that come at
 * random moments, and continuations. */
#pragma once

#include "problem.h"

/* Runs launches until they are done, and compares what they leave in @out. False: see the message.
 */
bool run_persistent(struct run *run, enum weir_form form, uint32_t *out);

/* One worker of the resumable form that is asked to leave at its first block, which may run on for
 * @drain ns. @n_long of the last 16 tickets took @took ns, the others 1 ns; @took 0: there were
 * none. @words: as the launch leaves them. False: see the message. */
bool run_asked(struct run *run, uint32_t n_long, uint32_t took, uint32_t drain,
	       struct weir_words *words);
