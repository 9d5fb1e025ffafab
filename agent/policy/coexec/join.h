/* Which client joins the members of a plan. */
#pragma once

#include "policy/coexec/coexec.h"

struct coexec_memory;
struct run_queue;

/* Of the clients that have waited longest, the one that is expected to gain most; NULL: none does.
 * @memory: may be NULL. */
struct run_queue_entry *coexec_find_joiner(struct run_queue *queue, struct coexec_memory *memory);
/* A client that waits would gain more than @found with the first member, as far as is known. */
bool coexec_expects_more(const struct run_queue *queue, struct coexec_memory *memory, double found);
