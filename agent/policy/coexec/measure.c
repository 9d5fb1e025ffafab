#include "policy/coexec/measure.h"

#include "policy/coexec/memory.h"
#include "policy/policy.h"

#include "weir/base.h"

#define CHANGED 0.05 /* a speed alone that differs by less is not remembered again */
#define FASTEST 2.0  /* the highest speed that is believed, ns of work in a ns; */
#define HIGHEST 1.1  /* the highest rate */

uint64_t coexec_clock(const struct run_queue *queue)
{
	return queue->now - queue->blocked;
}

/* ns of work that is queued, as it takes alone. */
static uint64_t queued(const struct run_queue_entry *entry)
{
	const struct coexec_client *client = &entry->coexec;

	return client->launched > client->executed ? client->launched - client->executed : 0;
}

/* ns, mean of the launches that are queued; 0: there is none. */
static uint64_t launch_of(const struct run_queue_entry *entry)
{
	return entry->launches ? queued(entry) / entry->launches : 0;
}

static uint64_t longest_launch(const struct coexec_plan *plan)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < plan->n; i++)
		longest = larger(longest, launch_of(plan->members[i]));
	return longest;
}

/* ns for which a measurement, or the wait for it, may last. */
static uint64_t waits_at_most(const struct coexec_plan *plan)
{
	return smaller(larger(COEXEC_LONGEST, COEXEC_LAUNCHES * longest_launch(plan)),
		       COEXEC_LIMIT);
}

void coexec_measure(struct coexec_plan *plan, uint64_t now)
{
	plan->phase = COEXEC_MEASURING;
	plan->since = now;
	for (unsigned i = 0; i < plan->n; i++) {
		struct coexec_client *client = &plan->members[i]->coexec;
		client->seen = client->executed;
		client->first_at = client->last_at = 0;
	}
}

void coexec_settle(struct coexec_plan *plan, uint64_t now)
{
	plan->phase = COEXEC_SETTLING;
	plan->since = now;
	for (unsigned i = 0; i < plan->n; i++) {
		struct run_queue_entry *entry = plan->members[i];
		entry->coexec.settles = entry->coexec.launched;
		entry->coexec.changes_at = 0;
	}
}

uint8_t coexec_workers(const struct coexec_plan *plan, unsigned i)
{
	const struct coexec_client *client = &plan->members[i]->coexec;

	return client->changes_at ? client->former : plan->now.workers[i];
}

void coexec_tell_late(const struct coexec_plan *plan, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		struct run_queue_entry *entry = plan->members[i];
		if (!entry->coexec.changes_at || now < entry->coexec.changes_at)
			continue;
		entry->coexec.changes_at = 0;
		entry->coexec.settles = entry->coexec.launched;
	}
}

bool coexec_is_settled(const struct coexec_plan *plan, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		const struct run_queue_entry *entry = plan->members[i];
		if (entry->active &&
		    (entry->coexec.changes_at || entry->coexec.executed < entry->coexec.settles))
			return now - plan->since >= waits_at_most(plan);
	}
	return true;
}

void coexec_look_at_ends(const struct coexec_plan *plan, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		struct coexec_client *client = &plan->members[i]->coexec;
		if (client->executed == client->seen)
			continue;
		if (!client->first_at) {
			client->first_at = now;
			client->first = client->executed;
		}
		client->last_at = now;
		client->last = client->seen = client->executed;
	}
}

bool coexec_is_measured(const struct coexec_plan *plan, uint64_t now)
{
	uint64_t passed = now - plan->since;

	for (unsigned i = 0; i < plan->n; i++) {
		const struct coexec_client *client = &plan->members[i]->coexec;
		if (!client->first_at || client->last_at - client->first_at < COEXEC_WINDOW / 2)
			return passed >= waits_at_most(plan);
	}
	return passed >= COEXEC_WINDOW;
}

static double at_most(double value, double most)
{
	return value < most ? value : most;
}

double coexec_speed(const struct coexec_client *client)
{
	if (client->last_at <= client->first_at)
		return 0;
	return at_most((double)(client->last - client->first) /
			       (double)(client->last_at - client->first_at),
		       FASTEST);
}

/* The speed since the measurement began, at most: a launch may be about to end. 0: not known. */
static double highest_speed(const struct coexec_plan *plan, const struct run_queue_entry *entry,
			    uint64_t now)
{
	const struct coexec_client *client = &entry->coexec;
	uint64_t launch = launch_of(entry);
	uint64_t done = client->first_at ? client->last - client->first : 0;
	uint64_t passed = now - (client->first_at ? client->first_at : plan->since);

	return passed && launch ? (double)(done + launch) / (double)passed : 0;
}

static double highest_rate(const struct coexec_plan *plan, const struct run_queue_entry *entry,
			   uint64_t now)
{
	double speed = highest_speed(plan, entry, now), alone = entry->coexec.alone;

	return speed > 0 ? at_most(speed / (alone > 0 ? alone : 1), HIGHEST) : HIGHEST;
}

bool coexec_is_below(const struct coexec_plan *plan, double least, uint64_t now,
		     double rates[COEXEC_MOST])
{
	double sum = 0;

	if (now - plan->since < COEXEC_WINDOW / 2)
		return false;
	for (unsigned i = 0; i < plan->n; i++) {
		rates[i] = highest_rate(plan, plan->members[i], now);
		sum += rates[i];
	}
	return sum < least;
}

double coexec_rates(const struct coexec_plan *plan, double rates[COEXEC_MOST])
{
	double sum = 0;

	for (unsigned i = 0; i < plan->n; i++) {
		const struct coexec_client *client = &plan->members[i]->coexec;
		rates[i] = at_most(coexec_speed(client) / (client->alone > 0 ? client->alone : 1),
				   HIGHEST);
		sum += rates[i];
	}
	return sum;
}

/* ns until what is queued is done, at the speed that was measured last; 0: not known. */
static uint64_t drains_in(const struct coexec_plan *plan, const struct run_queue_entry *entry,
			  uint64_t now)
{
	double speed = coexec_speed(&entry->coexec);

	speed = speed > 0 ? speed : highest_speed(plan, entry, now);
	return speed > 0 ? (uint64_t)((double)queued(entry) / speed) : 0;
}

void coexec_change(struct coexec_plan *plan, const struct coexec_configuration *next, uint64_t now)
{
	uint64_t drain[COEXEC_MOST], longest = 0;
	uint8_t former[COEXEC_MOST];

	for (unsigned i = 0; i < plan->n; i++) {
		former[i] = coexec_workers(plan, i);
		drain[i] = smaller(drains_in(plan, plan->members[i], now), COEXEC_LONGEST);
		longest = larger(longest, drain[i]);
	}
	plan->now = *next;
	coexec_settle(plan, now);
	for (unsigned i = 0; i < plan->n; i++) {
		struct coexec_client *client = &plan->members[i]->coexec;
		if (drain[i] == longest || !drain[i])
			continue;
		client->former = former[i];
		client->changes_at = now + longest - drain[i];
	}
}

void coexec_recognise(struct coexec_client *client, struct coexec_memory *memory)
{
	double alone;

	if (client->of == client->kernel.number)
		return;
	client->of = client->kernel.number;
	alone = memory ? coexec_memory_find(memory, &client->of, 1, NULL) : 0;
	client->measured = alone > 0;
	if (alone > 0) {
		client->alone = alone;
		client->known = client->formed = true;
	} else if (client->known) {
		/* Only if it is known: else a client that changes kernels all the time would
		 * restart COEXEC_SOLO each time, and the others would wait for ever. */
		client->formed = false;
		client->solo_since = 0;
	}
}

static void remember_alone(const struct coexec_client *client, struct coexec_memory *memory)
{
	double before;

	if (!memory || client->alone <= 0)
		return;
	before = coexec_memory_find(memory, &client->of, 1, NULL);
	if (before < client->alone * (1 - CHANGED) || before > client->alone * (1 + CHANGED))
		coexec_memory_put(memory, &client->of, 1, (uint8_t[COEXEC_MOST]){0}, client->alone);
}

void coexec_note_alone(struct coexec_plan *plan, struct coexec_memory *memory)
{
	struct coexec_client *client = &plan->members[0]->coexec;
	double speed = coexec_speed(client);

	plan->numbers[0] = client->kernel.number;
	if (!client->formed)
		return;
	if (speed > 0)
		client->alone = client->measured ? (client->alone + speed) / 2 : speed;
	client->known = client->measured = true;
	remember_alone(client, memory);
}
