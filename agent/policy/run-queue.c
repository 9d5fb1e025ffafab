#include "policy/run-queue.h"

#include <string.h>

#include <utlist.h>

#include "policy/coexec/plan.h"
#include "policy/holds.h"
#include "policy/waiting.h"

#include "weir/base.h"

void run_queues_init(struct run_queues *queues, const struct policy *policy,
		     const struct policy_settings *settings, run_queues_hold_fn *hold)
{
	*queues = (struct run_queues){.policy = policy, .settings = *settings, .hold = hold};
	if (settings->aging == 0)
		queues->settings.aging = policy->shares ? POLICY_NEVER : POLICY_AGING;
	for (unsigned i = 0; i < WEIR_LEVELS; i++)
		queues->levels[i] = (struct run_queue){
			.policy = policy, .settings = &queues->settings, .due = POLICY_NEVER};
}

static void set_now(struct run_queues *queues, uint64_t now)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		queues->levels[level].now = now;
}

/* The smallest objective of all active clients; there are few with one. */
static void find_objective(struct run_queue *queue)
{
	const struct run_queue_entry *entry;

	queue->slo = queue->current ? queue->current->slo : 0;
	if (queue->n_slo == 0)
		return;
	DL_FOREACH (queue->waiting, entry) {
		if (entry->slo && (!queue->slo || entry->slo < queue->slo))
			queue->slo = entry->slo;
	}
}

static uint64_t cost_of_switch(const struct run_queue_entry *entry)
{
	return policy_cost(entry) + (entry->lag ? POLICY_STOP : 0);
}

static void count(struct run_queue *queue, const struct run_queue_entry *entry, int sign)
{
	queue->n_active += (unsigned)sign;
	queue->weights += (uint64_t)sign * entry->weight;
	queue->costs += (uint64_t)sign * cost_of_switch(entry);
	queue->n_slo += entry->slo ? (unsigned)sign : 0;
	queue->settled = false;
	/* Ranks by weight may have changed. */
	if (queue->policy->ran)
		queue->candidate = NULL;
}

static void enter(struct run_queues *queues, struct run_queue_entry *entry)
{
	struct run_queue *queue = entry->queue;

	entry->active = true;
	entry->waited = entry->ran = false;
	entry->arrived = entry->waiting_since = queue->now;
	if (!entry->busy_since || queue->now - entry->left >= POLICY_GAP)
		entry->busy_since = queue->now;
	count(queue, entry, 1);
	if (queues->policy->arrived)
		queues->policy->arrived(entry);
	DL_APPEND(queue->waiting, entry);
	waiting_note(queue, entry);
	find_objective(queue);
	queue->due = smaller(queue->due, waiting_due(queue, entry));
}

static void leave(struct run_queues *queues, struct run_queue_entry *entry)
{
	struct run_queue *queue = entry->queue;

	if (queue->current == entry)
		queue->current = NULL;
	else
		waiting_withdraw(queue, entry);
	entry->active = false;
	entry->left = queue->now;
	count(queue, entry, -1);
	find_objective(queue);
	holds_set(queues, entry, false);
}

void run_queues_add(struct run_queues *queues, struct run_queue_entry *entry)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		coexec_plan_forget(&queues->levels[level].plan, entry);
	*entry = (struct run_queue_entry){.queue = &queues->levels[entry->level],
					  .level = entry->level,
					  .group = entry->group,
					  .weight = entry->weight,
					  .slo = entry->slo,
					  .cost = entry->cost,
					  .lag = entry->lag,
					  .quick = entry->quick,
					  .preempted = entry->preempted};
}

void run_queues_work(struct run_queues *queues, struct run_queue_entry *entry, uint64_t launches,
		     uint64_t remaining, uint64_t now)
{
	struct run_queue *queue = entry->queue;
	bool active = launches > 0;

	set_now(queues, now);
	if (entry->active && entry->remaining != remaining) {
		queue->settled = false;
		if (entry != queue->current)
			queue->candidate = NULL;
	}
	entry->launches = launches;
	entry->remaining = remaining;
	if (active == entry->active || queues->policy->never_holds)
		return;
	if (active)
		enter(queues, entry);
	else
		leave(queues, entry);
}

void run_queues_remove(struct run_queues *queues, struct run_queue_entry *entry, uint64_t now)
{
	run_queues_work(queues, entry, 0, 0, now);
	coexec_plan_forget(&entry->queue->plan, entry);
}

/* A held client that still runs is leaving: that is the end of its last run. While no client waits,
 * the current one owes nothing for what it runs, but its run gets older. */
void run_queues_ran(struct run_queue_entry *entry, uint64_t ns)
{
	struct run_queue *queue = entry->queue;

	entry->remaining -= ns < entry->remaining ? ns : entry->remaining;
	if (queue->current == entry)
		queue->used += ns;
	run_queues_correct(entry, (int64_t)ns);
}

void run_queues_correct(struct run_queue_entry *entry, int64_t ns)
{
	struct run_queue *queue = entry->queue;

	entry->ran |= ns > 0 && !entry->held;
	/* What one client runs may change the ranks of all. */
	if (queue->current != entry || queue->policy->ran)
		queue->candidate = NULL;
	if (queue->sliced)
		return;
	if ((queue->waiting || ns < 0) && queue->policy->ran)
		queue->policy->ran(entry, ns);
	else if (ns > 0 && queue->policy->ran_alone)
		queue->policy->ran_alone(entry, ns);
}

void run_queues_change(struct run_queues *queues, struct run_queue_entry *entry,
		       const struct run_queue_entry *news, uint64_t now)
{
	bool active = entry->active, moves = entry->level != news->level;

	set_now(queues, now);
	if (active && moves)
		leave(queues, entry);
	else if (active)
		count(entry->queue, entry, -1);
	if (moves)
		coexec_plan_forget(&entry->queue->plan, entry);
	entry->level = news->level;
	entry->queue = &queues->levels[entry->level];
	/* What it owes is owed to the clients that it leaves. */
	if (moves)
		memset(entry->state, 0, sizeof(entry->state));
	entry->weight = news->weight;
	entry->slo = news->slo;
	entry->cost = news->cost;
	entry->lag = news->lag;
	entry->quick = news->quick;
	if (active && moves) {
		enter(queues, entry);
	} else if (active) {
		count(entry->queue, entry, 1);
		find_objective(entry->queue);
		entry->queue->candidate = NULL;
	}
}

static void stop(struct run_queue *queue)
{
	struct run_queue_entry *entry = queue->current;
	uint64_t left = queue->used < queue->allowed ? queue->allowed - queue->used : 0;

	queue->current = NULL;
	entry->ran = false;
	if (queue->used > 0) {
		entry->waiting_since = queue->now;
		entry->waited = true;
		DL_APPEND(queue->waiting, entry);
	} else {
		waiting_put_back(queue, entry);
	}
	if (queue->policy->ended)
		queue->policy->ended(entry, left);
	waiting_note(queue, entry);
}

static void start(struct run_queue *queue, struct run_queue_entry *entry, bool forced)
{
	const struct policy *policy = queue->policy;

	waiting_withdraw(queue, entry);
	queue->forced = forced;
	queue->current = entry;
	queue->started = entry->began = queue->now;
	queue->used = 0;
	queue->allowed = policy->quantum ? policy->quantum(entry) : POLICY_NEVER;
	if (forced)
		queue->allowed = larger(smaller(queue->allowed, queue->settings->quantum),
					queue->settings->min_quantum);
}

static bool preempted(struct run_queue *queue)
{
	const struct policy *policy = queue->policy;

	if (!policy->preempts)
		return false;
	if (!queue->candidate)
		queue->candidate = waiting_first(queue);
	if (queue->concurrent)
		return policy->rank(queue->candidate) < policy->rank(queue->current);
	return policy->preempts(queue->candidate, queue->current);
}

/* Ends the current run if it is time. True: no client is current. */
static bool vacate(struct run_queue *queue, bool due)
{
	if (!queue->current)
		return true;
	bool over = queue->used >= queue->allowed || (!queue->forced && (due || preempted(queue)));
	if (over)
		stop(queue);
	return over;
}

/* Clients that could run concurrently so far begin to wait when they cannot. */
static void set_concurrent(struct run_queue *queue)
{
	bool concurrent = queue->policy->concurrent && queue->all_concurrent && queue->n_slo == 0 &&
			  (!queue->policy->plan || queue->bounds);
	struct run_queue_entry *entry, *next;

	if (queue->concurrent && !concurrent) {
		DL_FOREACH_SAFE (queue->waiting, entry, next)
			if (!entry->held)
				waiting_from_now(queue, entry);
	}
	/* Holds depend on remaining times, which change all the time. */
	if (queue->concurrent || concurrent)
		queue->settled = false;
	queue->concurrent = concurrent;
}

/* True: the hardware shares the GPU among its clients, and decides. What they run meanwhile is
 * nobody's turn. */
static bool leave_to_slices(struct run_queues *queues, struct run_queue *queue)
{
	const struct policy *policy = queue->policy;
	bool sliced = queue->slices && queue->n_slo == 0 && queue->n_active > 1 &&
		      policy->slices_now && policy->slices_now(queue);
	struct run_queue_entry *entry;

	DL_FOREACH (queue->waiting, entry) {
		if (sliced)
			holds_set(queues, entry, false);
		else if (queue->sliced)
			entry->waiting_since = queue->now;
	}
	if (sliced)
		queue->n_free = queue->n_active - (queue->current != NULL);
	if (sliced || queue->sliced) {
		queue->settled = false;
		queue->started = queue->now;
	}
	if (sliced && queue->current)
		holds_set(queues, queue->current, false);
	queue->sliced = sliced;
	return sliced;
}

static void decide(struct run_queues *queues, struct run_queue *queue)
{
	struct run_queue_entry *before = queue->current;
	const struct run_queue_entry *urgent;

	if (leave_to_slices(queues, queue))
		return;
	set_concurrent(queue);
	if (queues->policy->plan) {
		queues->policy->plan(queue, queues->memory);
		queue->candidate = NULL;
	}
	if (queue->settled && queue->used < queue->allowed &&
	    (queue->forced || queue->now < queue->due))
		return;
	while (queue->waiting) {
		struct run_queue_entry *due = waiting_due_now(queue);
		if (!vacate(queue, due != NULL))
			break;
		start(queue, due ? due : waiting_first(queue), due != NULL);
		/* The policy may say: not now. */
		if (queue->allowed > 0)
			break;
	}
	holds_write(queues, queue);
	if (queue->current != before && before && (before->held || !queue->concurrent)) {
		queue->switches++;
		before->preempted++;
	}
	urgent = waiting_urgent(queue);
	queue->due = urgent ? waiting_due(queue, urgent) : POLICY_NEVER;
	queue->settled = true;
}

/* When to decide next if all runs as predicted: the run is over, its work is done, or another
 * client must be current. */
static uint64_t next_decision(const struct run_queue *queue, const struct policy_settings *settings)
{
	uint64_t left = queue->allowed - queue->used, work = queue->current->remaining;
	uint64_t due = queue->forced ? POLICY_NEVER : queue->due;

	left = smaller(left, work > settings->min_timer ? work : settings->min_timer);
	return smaller(left < POLICY_NEVER - queue->now ? queue->now + left : POLICY_NEVER, due);
}

uint64_t run_queues_decide(struct run_queues *queues, uint64_t now)
{
	uint64_t next = POLICY_NEVER;
	bool blocked = false;

	set_now(queues, now);
	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		struct run_queue *queue = &queues->levels[level];
		decide(queues, queue);
		if (queue->waiting && !blocked && !queue->sliced)
			next = smaller(next, next_decision(queue, &queues->settings));
		blocked |= queue->n_active > 0;
	}
	return next > now ? next : now + 1;
}
