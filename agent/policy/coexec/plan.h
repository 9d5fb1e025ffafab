/* Decides which clients of a level run at the same time, and with how many workers: coexec.h says
 * how. */
#pragma once

#include "policy/coexec/coexec.h"

struct coexec_memory;
struct run_queue;

/* Call it before the run queue decides. The plan is empty if clients of the queue cannot run at the
 * same time. @memory: may be NULL. */
void coexec_plan_decide(struct run_queue *queue, struct coexec_memory *memory);
/* @entry leaves the run queue. */
void coexec_plan_forget(struct coexec_plan *plan, const struct run_queue_entry *entry);
