/* The run queues of one GPU, one for each level. Of the clients of a level that have work
 * outstanding one is current, and the others are held, but for those of the current client's group,
 * which may wait for one another. A client without work is never held. Pure.
 *
 *  - A run ends when its client's work is done, when another client waits and the run was as long
 *    as the policy allows, when the policy lets another client take over, or when another client
 *    has waited too long: for the settings' aging, or until its latency objective is in danger.
 *  - A run that was given for waiting too long (`forced`) lasts a quantum, whatever the policy
 *    says.
 *  - Levels do not know of each other. Below a busy level no client runs, so runs there get no
 *    older. When the GPU is free again, the current client goes on.
 *  - Clients are concurrent where the GPU runs kernels of several at the same time, the policy
 *    makes use of that, and no active client has an objective. Then only those clients are held
 *    that would be in the current client's way, and to change the current client costs nothing. A
 *    forced run is its client's alone there, too.
 *
 * Events change what is known; run_queues_decide() acts on it. Charge what ran before. */
#pragma once

#include "policy/policy.h"

/* Without clients. */
void run_queues_init(struct run_queues *queues, const struct policy *policy,
		     const struct policy_settings *settings, run_queues_hold_fn *hold);

/* @entry's level, group, weight, slo, cost, lag and quick are filled in. The rest becomes zero, but
 * its counter goes on. */
void run_queues_add(struct run_queues *queues, struct run_queue_entry *entry);
/* Before it goes. */
void run_queues_remove(struct run_queues *queues, struct run_queue_entry *entry, uint64_t now);
/* It has @launches outstanding and @remaining ns of work. 0: none, and it is released. */
void run_queues_work(struct run_queues *queues, struct run_queue_entry *entry, uint64_t launches,
		     uint64_t remaining, uint64_t now);
/* It ran for @ns since the last call, by the clock. */
void run_queues_ran(struct run_queue_entry *entry, uint64_t ns);
/* charge.h's `extra`, or `refund` as a negative number. */
void run_queues_correct(struct run_queue_entry *entry, int64_t ns);
/* Takes @news' level, weight, objective, cost, lag, and whether it is quick. */
void run_queues_change(struct run_queues *queues, struct run_queue_entry *entry,
		       const struct run_queue_entry *news, uint64_t now);
/* Decides. Returns when to decide next if nothing happens and all runs as predicted. Later costs
 * precision, nothing else. */
uint64_t run_queues_decide(struct run_queues *queues, uint64_t now);
