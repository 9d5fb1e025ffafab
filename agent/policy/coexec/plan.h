/* Decides which clients of a level run at the same time, and with how many workers: coexec.h says
 * how. */
#pragma once

#include "policy/coexec/coexec.h"

struct coexec_memory;
struct run_queue;

/* Before the run queue decides. If its clients cannot run at the same time there is no plan. */
void coexec_plan_decide(struct run_queue *queue, struct coexec_memory *memory);
/* @entry goes. */
void coexec_plan_forget(struct coexec_plan *plan, const struct run_queue_entry *entry);
