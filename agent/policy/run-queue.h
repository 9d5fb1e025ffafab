/* Whose turn it is, on one GPU. For each level: of the clients that have work outstanding one has
 * the turn, and all others are held but those of its group, which may wait for one another; who has
 * no work is never held. Pure.
 *
 *  - A turn ends when its work is done, when it was as long as the policy allows and somebody
 * waits, when the policy lets somebody take it, or when somebody has waited too long: as long as
 * the settings' aging says, or so long that its latency objective is in danger.
 *  - A turn that was given for that reason lasts a quantum, whatever the policy says.
 *  - Levels do not know of each other. Below a level that is busy nobody runs, so no turn there
 *    gets any older, and when the GPU is free again the one that has the turn goes on.
 *  - Clients run abreast where the GPU runs kernels of several at the same time, the policy makes
 *    use of that, and none of them has an objective: then of the others only those are held that
 *    would be in the way of the one that has the turn, and to give it to another costs nothing. A
 *    turn that was given for age is its client's alone there, too.
 *
 * Events change what is known; run_queues_decide() acts on it. What ran must be told before. */
#pragma once

#include "policy/policy.h"

#include "weir/protocol.h"

struct run_queues;
typedef void run_queues_hold_fn(struct run_queues *queues, struct run_queue_entry *entry,
				bool held);

struct run_queues {
	const struct policy *policy;
	struct policy_settings settings; /* aging as it is in force */
	run_queues_hold_fn *hold;
	struct run_queue levels[WEIR_LEVELS];
};

/* Nobody is there. */
void run_queues_init(struct run_queues *queues, const struct policy *policy,
		     const struct policy_settings *settings, run_queues_hold_fn *hold);

/* @client's level, group, weight, slo and cost are filled in; all else becomes zero. */
void run_queues_add(struct run_queues *queues, struct run_queue_entry *entry);
/* It is not held any more. */
void run_queues_remove(struct run_queues *queues, struct run_queue_entry *entry, uint64_t now);
/* It has @launches outstanding, @remaining ns of work, or none any more. */
void run_queues_work(struct run_queues *queues, struct run_queue_entry *entry, uint64_t launches,
		     uint64_t remaining, uint64_t now);
/* Whether kernels of all clients of @level may run at the same time. */
void run_queues_set_all_concurrent(struct run_queues *queues, uint8_t level, bool concurrent);
/* It ran for @ns since this was told last, on the GPU's time. */
void run_queues_ran(struct run_queues *queues, struct run_queue_entry *entry, uint64_t ns);
/* It ran for @ns more than that, in others' turns; or @ns of that were others'. */
void run_queues_overran(struct run_queues *queues, struct run_queue_entry *entry, uint64_t ns);
void run_queues_refund(struct run_queues *queues, struct run_queue_entry *entry, uint64_t ns);
/* It has another level, weight, objective or cost of eviction. */
void run_queues_change(struct run_queues *queues, struct run_queue_entry *entry,
		       const struct run_queue_entry *news, uint64_t now);
/* Decides. When to decide next if nothing happens before, if all runs as it should; later does no
 * harm but to precision. */
uint64_t run_queues_decide(struct run_queues *queues, uint64_t now);
