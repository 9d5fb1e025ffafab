#include "policy/coexec/plan.h"

#include <utlist.h>

#include "policy/coexec/join.h"
#include "policy/coexec/measure.h"
#include "policy/coexec/memory.h"
#include "policy/coexec/service.h"
#include "policy/policy.h"

#include "weir/base.h"

static void remove_at(struct coexec_plan *plan, unsigned i)
{
	plan->members[i]->coexec.together = false;
	plan->members[i]->coexec.workers = 0;
	plan->n--;
	for (; i < plan->n; i++) {
		plan->members[i] = plan->members[i + 1];
		plan->numbers[i] = plan->numbers[i + 1];
		plan->now.workers[i] = plan->now.workers[i + 1];
	}
	plan->searching = plan->corrects = false;
	plan->shrunk = true;
}

void coexec_plan_forget(struct coexec_plan *plan, const struct run_queue_entry *entry)
{
	for (unsigned i = plan->n; i-- > 0;)
		if (plan->members[i] == entry)
			remove_at(plan, i);
}

static void clear(struct coexec_plan *plan)
{
	plan->sets++;
	while (plan->n)
		remove_at(plan, plan->n - 1);
}

/* An earlier search of the set that did not end goes on. */
static void begin_search(struct coexec_plan *plan, struct coexec_memory *memory, uint64_t now)
{
	coexec_search_begin(&plan->search, &plan->space, plan->n, plan->speed_up + COEXEC_GAIN);
	if (memory)
		coexec_unfinished_resume(&memory->unfinished, plan->numbers, plan->n, &plan->space,
					 &plan->search);
	plan->searching = true;
	plan->search_since = now;
	plan->searches++;
	plan->now = plan->space.of[plan->search.at];
	coexec_settle(plan, now);
}

static void add(struct coexec_plan *plan, struct run_queue_entry *entry)
{
	plan->numbers[plan->n] = entry->coexec.kernel.number;
	plan->now.workers[plan->n] = 0;
	plan->members[plan->n++] = entry;
	entry->coexec.together = true;
	plan->corrects = false;
	plan->lost = 0;
}

/* The client that joined last waits again. */
static void refuse_last(struct coexec_plan *plan, uint64_t now)
{
	struct run_queue_entry *entry = plan->members[plan->n - 1];
	struct coexec_configuration before = plan->before;

	remove_at(plan, plan->n - 1);
	entry->coexec.refused = plan->sets;
	plan->now = before;
	plan->shrunk = false;
	coexec_settle(plan, now);
}

static void remember(const struct coexec_plan *plan, struct coexec_memory *memory, double speed_up)
{
	if (!memory)
		return;
	coexec_unfinished_forget(&memory->unfinished, plan->numbers, plan->n);
	coexec_memory_put(memory, plan->numbers, plan->n, plan->now.workers, speed_up);
}

/* A set that seldom gains: three kernels and more, or two that wait for the same thing. */
static bool is_unlikely(const struct coexec_plan *plan, const struct coexec_memory *memory)
{
	return plan->n > 2 ||
	       (memory && coexec_memory_alike(memory, plan->numbers[0], plan->numbers[1]));
}

/* The search's best configuration is in use from now on, and gave @speed_up. */
static void use_best(struct coexec_plan *plan, struct coexec_memory *memory, double speed_up,
		     uint64_t now)
{
	coexec_change(plan, &plan->space.of[plan->search.best], now);
	remember(plan, memory, speed_up);
}

/* Takes the best configuration that was tried. */
static void end_search(struct coexec_plan *plan, struct coexec_memory *memory, uint64_t now)
{
	double highest = plan->search.highest;

	/* 0: in each configuration that was measured some kernel starved. */
	highest = highest > 0 ? highest : 1;
	plan->searching = false;
	plan->searched = now - plan->search_since;
	plan->explored += is_unlikely(plan, memory) ? plan->searched : 0;
	use_best(plan, memory, highest, now);
	if (highest < plan->speed_up + COEXEC_GAIN) {
		refuse_last(plan, now);
		return;
	}
	plan->corrects = true;
	plan->speed_up = highest;
	plan->sets++;
	plan->turn_since = now;
}

static void kernels_of(const struct coexec_plan *plan, struct coexec_kernel out[COEXEC_MOST])
{
	for (unsigned i = 0; i < plan->n; i++)
		out[i] = plan->members[i]->coexec.kernel;
}

static bool is_possible(const struct coexec_plan *plan, const struct coexec_kernel *kernels)
{
	for (unsigned i = 0; i < plan->n; i++)
		if (plan->now.workers[i] > coexec_room(kernels, plan->n, &plan->now, i))
			return false;
	return true;
}

/* True: the members' configuration is remembered, and in use from now on. */
static bool recall(struct coexec_plan *plan, struct coexec_memory *memory,
		   const struct coexec_kernel *kernels, uint64_t now)
{
	double speed_up =
		memory ? coexec_memory_find(memory, plan->numbers, plan->n, plan->now.workers) : 0;

	if (speed_up <= 0 || !is_possible(plan, kernels))
		return false;
	plan->speed_up = speed_up;
	plan->sets++;
	coexec_settle(plan, now);
	return true;
}

/* @entry joins the members. True: their configuration was remembered. False: a search for it has
 * begun, or @entry was refused. */
static bool join(struct coexec_plan *plan, struct run_queue_entry *entry,
		 struct coexec_memory *memory, uint64_t now)
{
	struct coexec_kernel kernels[COEXEC_MOST];

	plan->before = plan->now;
	add(plan, entry);
	kernels_of(plan, kernels);
	if (recall(plan, memory, kernels, now))
		return true;
	if (plan->n == 2)
		coexec_space_pair(&plan->space, kernels);
	else
		coexec_space_join(&plan->space, kernels, plan->n, &plan->before);
	if (plan->space.n) {
		begin_search(plan, memory, now);
		return false;
	}
	remember(plan, memory, 1);
	refuse_last(plan, now);
	return false;
}

/* Several join at once, if their configurations are remembered. */
static void let_join(struct run_queue *queue, struct coexec_memory *memory)
{
	struct coexec_plan *plan = &queue->plan;
	struct run_queue_entry *entry;
	uint64_t now = coexec_clock(queue);

	if (!plan->n || plan->searching || !plan->members[0]->coexec.measured ||
	    now - plan->looked < COEXEC_LOOK)
		return;
	plan->looked = now;
	while (plan->n < COEXEC_MOST && (entry = coexec_find_joiner(queue, memory)) &&
	       join(plan, entry, memory, now))
		continue;
}

/* After a pause no time is left over for sets that seldom gain: the work that comes may be short.
 */
static void note_pause(struct coexec_plan *plan, uint64_t now)
{
	if (!plan->begun || (plan->idle_since && now - plan->idle_since >= COEXEC_GRACE)) {
		plan->begun = now;
		plan->explored = 0;
	}
	plan->idle_since = 0;
}

static void begin_turn(struct run_queue *queue, struct coexec_memory *memory)
{
	struct coexec_plan *plan = &queue->plan;
	struct run_queue_entry *entry = coexec_least_served(queue);
	uint64_t now = coexec_clock(queue);

	clear(plan);
	if (!entry) {
		plan->idle_since = plan->idle_since ? plan->idle_since : now;
		return;
	}
	note_pause(plan, now);
	coexec_recognise(&entry->coexec, memory);
	add(plan, entry);
	plan->speed_up = 1;
	plan->shrunk = false;
	plan->searched = plan->changed_in = 0;
	plan->turn_since = now;
	plan->looked = now - COEXEC_LOOK;
	plan->now = (struct coexec_configuration){{0}};
	coexec_measure(plan, now);
}

/* So long that the search, and the wait until launches have their workers, are a small part of it.
 */
static uint64_t turn_of_several(const struct coexec_plan *plan)
{
	uint64_t search = smaller(COEXEC_REPAYS * plan->searched, COEXEC_GIVE_UP);
	uint64_t change = smaller(COEXEC_CHANGES * plan->changed_in, COEXEC_LIMIT);

	return plan->phase == COEXEC_SETTLING ? COEXEC_GIVE_UP
					      : larger(COEXEC_TURN, larger(search, change));
}

/* A client's first turn lasts until its speed alone is known. If it has another kernel later, it
 * has COEXEC_CLOSED to measure that one. */
static bool turn_is_over(const struct run_queue *queue)
{
	const struct coexec_plan *plan = &queue->plan;
	const struct coexec_client *first = &plan->members[0]->coexec;
	uint64_t turn = queue->settings->quantum;
	const struct run_queue_entry *next;

	if (plan->n > 1)
		turn = turn_of_several(plan);
	else if (!first->measured)
		turn = larger(turn, COEXEC_CLOSED);
	if (plan->searching || !first->known || coexec_clock(queue) - plan->turn_since < turn)
		return false;
	next = coexec_least_served(queue);
	return next && !next->coexec.together;
}

/* True: the client has been without work for longer than it usually pauses. */
static bool has_left(const struct run_queue_entry *entry)
{
	uint64_t stays = smaller(larger(COEXEC_LINGER, 2 * entry->coexec.pause), COEXEC_GRACE);

	return !entry->active && entry->queue->now - entry->left >= stays;
}

/* If no member has work, the turn is over. */
static void drop_idle(struct run_queue *queue)
{
	struct coexec_plan *plan = &queue->plan;
	unsigned active = 0;

	for (unsigned i = plan->n; i-- > 0;) {
		const struct run_queue_entry *entry = plan->members[i];
		active += entry->active;
		if (has_left(entry))
			remove_at(plan, i);
	}
	if (!active)
		clear(plan);
}

/* Some members have left. The others go on if their configuration is remembered. Else the turn is
 * over. */
static void go_on_with_fewer(struct coexec_plan *plan, struct coexec_memory *memory, uint64_t now)
{
	struct coexec_kernel kernels[COEXEC_MOST];

	plan->shrunk = false;
	kernels_of(plan, kernels);
	if (plan->n == 1) {
		plan->speed_up = 1;
		plan->now = (struct coexec_configuration){{0}};
		plan->looked = now - COEXEC_LOOK;
		coexec_settle(plan, now);
	} else if (!recall(plan, memory, kernels, now)) {
		clear(plan);
	}
}

/* A member has another kernel than when it joined. */
static bool has_changed(const struct coexec_plan *plan)
{
	for (unsigned i = 0; i < plan->n; i++)
		if (plan->members[i]->coexec.kernel.number != plan->numbers[i])
			return true;
	return false;
}

/* True: the only member's form is found, or it has none. */
static bool find_forms(struct run_queue *queue, const struct coexec_memory *memory)
{
	struct coexec_client *client = &queue->plan.members[0]->coexec;
	bool bounded = coexec_is_bounded(&client->kernel);
	uint64_t now = coexec_clock(queue), passed;

	if (!client->solo_since)
		client->solo_since = now;
	passed = now - client->solo_since;
	client->formed = passed >= COEXEC_SOLO ||
			 (passed >= COEXEC_CLOSED && (bounded || !client->tuning)) ||
			 (bounded && !client->tuning) ||
			 (memory && coexec_memory_knows(memory, client->kernel.number));
	return client->formed;
}

/* The best of a search's few short measurements is high by chance, so later ones correct it. A set
 * is kept even if it gains less than COEXEC_GAIN by them: only losses end it (watch()). */
static void correct(struct coexec_plan *plan, struct coexec_memory *memory, double sum)
{
	double known;

	plan->speed_up += (sum - plan->speed_up) / COEXEC_SAMPLES;
	if (plan->speed_up < 1 + COEXEC_GAIN)
		plan->speed_up = 1 + COEXEC_GAIN;
	known = memory ? coexec_memory_find(memory, plan->numbers, plan->n, NULL) : 0;
	if (known > plan->speed_up + COEXEC_OFF || known < plan->speed_up - COEXEC_OFF)
		remember(plan, memory, plan->speed_up);
}

/* Ends the set if its members are slower together than in turns, whatever was tried. */
static void watch(struct coexec_plan *plan, struct coexec_memory *memory, uint64_t now)
{
	double rates[COEXEC_MOST], sum = coexec_rates(plan, rates);

	correct(plan, memory, sum);
	if (plan->corrects && coexec_search_correct(&plan->search, sum)) {
		plan->lost = 0;
		plan->speed_up = plan->search.highest;
		use_best(plan, memory, plan->speed_up, now);
		return;
	}
	plan->lost = sum < 1 ? plan->lost + 1 : 0;
	if (plan->lost >= COEXEC_LOST) {
		remember(plan, memory, sum);
		refuse_last(plan, now);
		return;
	}
	coexec_measure(plan, now);
}

/* Some tries of a pair gained nothing, and the first member may gain more with another client. */
static bool must_make_room(const struct run_queue *queue, struct coexec_memory *memory)
{
	const struct coexec_search *search = &queue->plan.search;

	return queue->plan.n == 2 && search->tries >= COEXEC_POOR &&
	       search->highest < search->worth &&
	       coexec_expects_more(queue, memory, search->highest);
}

static void note_try(struct run_queue *queue, struct coexec_memory *memory, const double *rates,
		     uint64_t now)
{
	struct coexec_plan *plan = &queue->plan;

	coexec_search_feed(&plan->search, rates);
	if (plan->search.done) {
		end_search(plan, memory, now);
		return;
	}
	if (memory)
		coexec_unfinished_put(&memory->unfinished, plan->numbers, plan->n, &plan->space,
				      &plan->search);
	if (memory && must_make_room(queue, memory))
		refuse_last(plan, now);
	else
		coexec_change(plan, &plan->space.of[plan->search.at], now);
}

static void note_measured(struct run_queue *queue, struct coexec_memory *memory, uint64_t now)
{
	struct coexec_plan *plan = &queue->plan;
	double rates[COEXEC_MOST];

	if (plan->n == 1) {
		coexec_note_alone(plan, memory);
		coexec_measure(plan, now);
	} else if (plan->searching) {
		coexec_rates(plan, rates);
		note_try(queue, memory, rates, now);
	} else {
		watch(plan, memory, now);
	}
}

/* Clients of a member's container run, too: a member may wait for them. */
static bool is_with_members(const struct coexec_plan *plan, const struct run_queue_entry *entry)
{
	bool with = entry->coexec.together;

	for (unsigned i = 0; i < plan->n; i++)
		with |= entry->group && entry->group == plan->members[i]->group;
	return with;
}

/* A client that runs alone runs natively once its form is found. */
static void give_workers(struct run_queue *queue)
{
	const struct coexec_plan *plan = &queue->plan;
	struct run_queue_entry *entry;

	DL_FOREACH (queue->waiting, entry) {
		entry->coexec.workers = 0;
		entry->coexec.runs = is_with_members(plan, entry);
	}
	if (queue->current) {
		queue->current->coexec.workers = 0;
		queue->current->coexec.runs = is_with_members(plan, queue->current);
	}
	for (unsigned i = 0; plan->n > 1 && i < plan->n; i++)
		plan->members[i]->coexec.workers = coexec_workers(plan, i);
	if (plan->n == 1 && !plan->members[0]->coexec.formed && queue->n_active > 1)
		plan->members[0]->coexec.workers = COEXEC_UNBOUNDED;
}

static void end_plan(struct run_queue *queue)
{
	struct run_queue_entry *entry;

	clear(&queue->plan);
	DL_FOREACH (queue->waiting, entry) {
		entry->coexec.workers = 0;
	}
	if (queue->current)
		queue->current->coexec.workers = 0;
}

/* Measures the members, and acts on a finished measurement. */
static void look_at_members(struct run_queue *queue, struct coexec_memory *memory, uint64_t now)
{
	struct coexec_plan *plan = &queue->plan;
	double rates[COEXEC_MOST];

	coexec_tell_late(plan, now);
	/* All is known from before; or launches of seconds, or a client that reports nothing. */
	if (plan->searching && (plan->search.done || now - plan->search_since >= COEXEC_GIVE_UP))
		end_search(plan, memory, now);
	if (plan->phase == COEXEC_SETTLING && coexec_is_settled(plan, now)) {
		if (plan->n > 1 && !plan->searching && !plan->searched)
			plan->changed_in = now - plan->since;
		coexec_measure(plan, now);
	}
	if (plan->phase != COEXEC_MEASURING)
		return;
	coexec_look_at_ends(plan, now);
	if (coexec_is_measured(plan, now))
		note_measured(queue, memory, now);
	else if (plan->searching && coexec_is_below(plan, plan->search.highest, now, rates))
		note_try(queue, memory, rates, now);
}

void coexec_plan_decide(struct run_queue *queue, struct coexec_memory *memory)
{
	struct coexec_plan *plan = &queue->plan;
	uint64_t now = coexec_clock(queue);

	if (!queue->concurrent) {
		end_plan(queue);
		return;
	}
	for (unsigned i = 0; i < plan->n; i++)
		coexec_recognise(&plan->members[i]->coexec, memory);
	coexec_note_service(queue);
	drop_idle(queue);
	if (plan->n && plan->shrunk)
		go_on_with_fewer(plan, memory, now);
	if (plan->n > 1 && has_changed(plan))
		clear(plan);
	if (!plan->n)
		begin_turn(queue, memory);
	if (plan->n == 1 && !plan->members[0]->coexec.formed && find_forms(queue, memory))
		coexec_settle(plan, now);
	if (plan->n)
		look_at_members(queue, memory, now);
	if (plan->n && turn_is_over(queue))
		begin_turn(queue, memory);
	let_join(queue, memory);
	give_workers(queue);
}
