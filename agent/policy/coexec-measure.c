#include "policy/coexec-measure.h"

#include "policy/policy.h"

#include "weir/base.h"

#define FASTEST 2.0 /* times its speed alone: more is not believed */

static uint64_t longest_launch(const struct coexec_plan *plan)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < plan->n; i++) {
		const struct run_queue_entry *entry = plan->members[i];
		if (entry->launches)
			longest = larger(longest, entry->remaining / entry->launches);
	}
	return longest;
}

static uint64_t patience(const struct coexec_plan *plan)
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
		entry->coexec.settles = entry->coexec.executed + entry->remaining;
	}
}

bool coexec_is_settled(const struct coexec_plan *plan, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		const struct run_queue_entry *entry = plan->members[i];
		if (entry->active && entry->coexec.executed < entry->coexec.settles)
			return now - plan->since >= patience(plan);
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
			return passed >= patience(plan);
	}
	return passed >= COEXEC_WINDOW;
}

double coexec_speed(const struct coexec_client *client)
{
	return client->last_at > client->first_at
		       ? (double)(client->last - client->first) /
				 (double)(client->last_at - client->first_at)
		       : 0;
}

double coexec_rates(const struct coexec_plan *plan, double rates[COEXEC_MOST])
{
	double sum = 0;

	for (unsigned i = 0; i < plan->n; i++) {
		const struct coexec_client *client = &plan->members[i]->coexec;
		rates[i] = coexec_speed(client) / (client->alone > 0 ? client->alone : 1);
		if (rates[i] > FASTEST)
			rates[i] = FASTEST;
		sum += rates[i];
	}
	return sum;
}
