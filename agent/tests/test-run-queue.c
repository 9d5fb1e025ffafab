/* What must hold under every policy: random events on the run queues, and random traces on the
 * simulated GPU. SEED=N repeats a run. */
#include "sim/sim.h"
#include "policy/run-queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define US 1000ull
#define MS 1000000ull

/* All policies that hold clients: main() fills it. */
static const char *names[32];
static size_t n_policies;

static uint64_t state;

static uint64_t below(uint64_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

/* Events on the run queues. */
#define CLIENTS 12

static struct run_queue_entry clients[CLIENTS];

static void hold(struct run_queues *queues, struct run_queue_entry *client, bool held)
{
	(void)queues;
	assert_int_equal(client->held, held);
}

/* Whether launches of @client are so long that @current, with less left, must run alone. Other
 * policies have other reasons. */
static bool is_in_the_way(const struct run_queue_entry *client,
			  const struct run_queue_entry *current)
{
	const struct policy *policy = client->queue->policy;
	if (policy != &policy_hpf)
		return policy->preempts(current, client);
	uint64_t launch = client->remaining / client->launches;
	uint64_t cost = client->cost ? client->cost : policy_defaults.cost;

	return launch > cost && launch - cost > current->remaining;
}

/* Of a level's clients with work one is current, and all others are held but those of its group. No
 * client without work is held. Concurrent clients: the one with the least left is current, and only
 * those in its way are held, except in a run that was given for age. */
static void check_queues(const struct run_queues *queues)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++) {
		const struct run_queue *queue = &queues->levels[level];
		const struct run_queue_entry *current = queue->current;
		bool shared = queues->policy->concurrent && queue->all_concurrent &&
			      (!queues->policy->plan || queue->bounds) && queue->n_slo == 0 &&
			      current && !queue->forced;
		unsigned active = 0;
		for (unsigned i = 0; i < CLIENTS; i++) {
			const struct run_queue_entry *client = &clients[i];
			if (client->level != level)
				continue;
			active += client->active;
			bool free = !client->active || client == current ||
				    (current && client->group && client->group == current->group) ||
				    (shared && !is_in_the_way(client, current));
			assert_int_equal(client->held, !free);
			const struct policy *policy = queues->policy;
			if (shared && client->active)
				assert_true(policy->rank(current) <= policy->rank(client));
		}
		assert_int_equal(queues->levels[level].n_active, active);
		assert_int_equal(current != NULL, active != 0);
	}
}

/* What it reports of its kernel, and of its work. */
static void report(struct run_queue_entry *client)
{
	client->coexec.executed += below(4 * MS);
	client->coexec.tuning = !below(8);
	client->coexec.kernel.number = below(20) ? client->coexec.kernel.number : below(5);
	for (unsigned i = 0; i < WEIR_SM_RESOURCES; i++)
		client->coexec.kernel.parts[i] =
			client->coexec.kernel.number == 4
				? 0
				: (uint32_t)(WEIR_SM_PARTS /
					     (2 + (client->coexec.kernel.number * (i + 1)) % 7));
}

static void event(struct run_queues *queues, bool few_objectives, uint64_t now)
{
	struct run_queue_entry *client = &clients[below(CLIENTS)], news = *client;

	switch (below(7)) {
	case 0:
		run_queues_work(queues, client, client->active ? 0 : 1 + below(9), below(20) * MS,
				now);
		break;
	case 1:
		run_queues_work(queues, client, client->active ? 1 + below(9) : 0, below(20) * MS,
				now);
		break;
	case 2:
		run_queues_remove(queues, client, now);
		run_queues_add(queues, client);
		break;
	case 3:
		news.level = (uint8_t)below(WEIR_LEVELS);
		news.weight = 1 + (uint32_t)below(10000);
		news.slo = below(few_objectives ? 40 : 3) ? 0 : below(10) * MS;
		news.cost = below(2) * below(5) * MS;
		run_queues_change(queues, client, &news, now);
		break;
	case 4:
		run_queues_correct(client, ((int64_t)below(5) - 2) * (int64_t)MS);
		break;
	case 5:
		queues->levels[below(WEIR_LEVELS)].all_concurrent = below(4);
		queues->levels[below(WEIR_LEVELS)].bounds = below(4);
		break;
	default:
		run_queues_ran(client, below(3) * MS);
	}
}

static void test_events(void **unused)
{
	(void)unused;
	for (size_t run = 0; run < 2 * n_policies; run++) {
		struct policy_settings settings = policy_defaults;
		struct run_queues queues;
		uint64_t now = 1, next;
		settings.aging = below(3) ? below(50) * MS : POLICY_NEVER;
		run_queues_init(&queues, policy_find(names[run / 2]), &settings, hold);
		for (unsigned i = 0; i < CLIENTS; i++) {
			clients[i] = (struct run_queue_entry){
				.weight = 100, .level = i % 2, .group = i % 4};
			run_queues_add(&queues, &clients[i]);
		}
		for (unsigned i = 0; i < 50000; i++) {
			for (uint64_t n = below(4); n > 0; n--)
				event(&queues, run % 2, now);
			report(&clients[below(CLIENTS)]);
			next = run_queues_decide(&queues, now);
			assert_true(next > now);
			check_queues(&queues);
			now += 1 + below(2 * MS);
		}
	}
}

/* @priority: 1 to POLICY_PRIORITY_MAX. */
static void come(struct run_queues *queues, unsigned i, uint32_t priority)
{
	clients[i] = (struct run_queue_entry){.weight = priority * 100 * POLICY_WEIGHT_ONE /
							POLICY_PRIORITY_MAX};
	run_queues_add(queues, &clients[i]);
}

static void decide_with(struct run_queues *queues, unsigned i, uint64_t launches, uint64_t now)
{
	run_queues_work(queues, &clients[i], launches, launches * MS, now);
	run_queues_decide(queues, now);
}

/* Counted is who had work left when another client took over, not who is done, waits, or comes
 * while the current one goes on. */
static void test_preempted(void **unused)
{
	struct policy_settings settings = policy_defaults;
	struct run_queues queues;

	(void)unused;
	settings.aging = POLICY_NEVER;
	run_queues_init(&queues, policy_find("static"), &settings, hold);
	come(&queues, 0, 1);
	come(&queues, 1, 2);
	come(&queues, 2, 2);
	decide_with(&queues, 0, 1, MS);
	decide_with(&queues, 1, 1, 2 * MS);
	decide_with(&queues, 2, 1, 3 * MS);
	assert_true(queues.levels[0].current == &clients[1]);
	decide_with(&queues, 1, 0, 4 * MS);
	decide_with(&queues, 2, 0, 5 * MS);
	assert_true(queues.levels[0].current == &clients[0]);
	assert_int_equal(clients[0].preempted, 1);
	assert_int_equal(clients[1].preempted + clients[2].preempted, 0);
	decide_with(&queues, 1, 1, 6 * MS);
	assert_int_equal(clients[0].preempted, 2);
	/* Another policy. */
	run_queues_add(&queues, &clients[0]);
	assert_int_equal(clients[0].preempted, 2);
}

/* Traces on the GPU. */
static struct trace_client traits[16];
static struct trace trace;

static void random_trace(unsigned always)
{
	trace = (struct trace){.clients = traits, .n_clients = 2 + below(14)};
	for (size_t i = 0; i < trace.n_clients; i++) {
		struct trace_client *client = &traits[i];
		*client = (struct trace_client){.level = (uint8_t)below(always ? 1 : 3),
						.share = 1 + (uint32_t)below(100),
						.evict = below(2) * below(500) * US,
						.work = (1 + below(8000)) * US,
						.launch = below(2) * below(1000) * US};
		snprintf(client->name, sizeof(client->name), "c%zu", i);
		client->always = i < always || below(4) == 0;
		if (!client->always)
			client->every = (1 + below(100)) * MS;
	}
}

static void random_overlaps(void)
{
	for (size_t i = 0; i < trace.n_clients; i++) {
		traits[i].overlap = below(300) * US;
		if (below(4) == 0)
			traits[i].evict = TRACE_NEVER;
	}
}

static void run(const char *policy, struct sim_options options, struct sim_result *result)
{
	options.policy = policy_find(policy);
	options.settings.late = options.look + options.late;
	options.seed = state;
	assert_int_equal(sim_run(result, &trace, &options), 0);
	/* All time is accounted for, and all that ran in it. */
	uint64_t ran = 0;
	for (size_t i = 0; i < result->n; i++) {
		assert_in_range(result->clients[i].ran, 0, result->clients[i].busy);
		ran += result->clients[i].ran;
	}
	assert_int_equal(ran, result->ran + result->shared);
	assert_int_equal(result->ran + result->idle + result->wasted, result->time);
	assert_int_equal(result->time, options.end);
}

static struct sim_options options_for(uint64_t end)
{
	struct sim_options options = sim_defaults;

	options.settings = policy_defaults;
	options.end = end;
	return options;
}

/* With an agent that sees all at once, there is never work while all clients that have it are held.
 */
static void test_work_conserving(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 40; i++) {
		struct sim_options options = options_for(2000 * MS);
		struct sim_result result;
		options.look = options.late = 0;
		options.mps = i % 2;
		random_trace(0);
		random_overlaps();
		for (size_t policy = 0; policy < n_policies; policy++) {
			run(names[policy], options, &result);
			assert_int_equal(result.held_alone, 0);
			sim_result_deinit(&result);
		}
	}
}

static void test_same_seed_same_result(void **unused)
{
	(void)unused;
	for (size_t policy = 0; policy < n_policies; policy++) {
		struct sim_options options = options_for(2000 * MS);
		struct sim_result a, b;
		options.mps = below(2);
		random_trace(0);
		run(names[policy], options, &a);
		run(names[policy], options, &b);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.clients, b.clients, a.n * sizeof(*a.clients));
		assert_int_equal(a.decisions, b.decisions);
		sim_result_deinit(&a);
		sim_result_deinit(&b);
	}
}

static uint64_t longest_launch(void)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < trace.n_clients; i++) {
		uint64_t launch = traits[i].launch && traits[i].launch < traits[i].work
					  ? traits[i].launch
					  : traits[i].work;
		longest = launch > longest ? launch : longest;
	}
	return longest;
}

/* A client that waits is current after aging, and after all that have waited longer. Each takes a
 * quantum, the time to leave, and a switch. Under MPS a client that is not held is served behind a
 * launch of each of the others. */
static void check_starvation(const struct sim_options *options)
{
	uint64_t each = options->settings.quantum + 500 * US + options->switching +
			(options->mps ? longest_launch() : 0);

	for (size_t policy = 0; policy < n_policies; policy++) {
		struct sim_result result;
		run(names[policy], *options, &result);
		for (size_t c = 0; c < result.n; c++)
			assert_in_range(result.clients[c].starved, 0,
					options->settings.aging + (result.n + 1) * each);
		sim_result_deinit(&result);
	}
}

static void test_no_starvation(void **unused)
{
	/* In the second, a client that was evicted ran on until it seemed to have run
	 * concurrently. */
	const uint64_t seeds[] = {state, 66149852230104672};

	(void)unused;
	for (size_t seed = 0; seed < 2; seed++) {
		state = seeds[seed];
		for (unsigned i = 0; i < 40; i++) {
			struct sim_options options = options_for(5000 * MS);
			options.look = options.late = 0;
			options.settings.aging = 20 * MS;
			options.settings.quantum = 2 * MS;
			options.mps = i % 2;
			random_trace(3);
			check_starvation(&options);
		}
	}
	state = seeds[0];
}

/* By weight, within 1 % of the GPU, although timers are late and evictions differ. */
static void test_shares(void **unused)
{
	static const char *const fair[] = {"ffs", "wfq", "whpf"};

	(void)unused;
	for (unsigned i = 0; i < 10; i++) {
		struct sim_options options = options_for(60000 * MS);
		double weights = 0;
		random_trace(16);
		for (size_t c = 0; c < trace.n_clients; c++)
			weights += traits[c].share;
		for (size_t policy = 0; policy < countof(fair); policy++) {
			struct sim_result result;
			run(fair[policy], options, &result);
			for (size_t c = 0; c < result.n; c++)
				assert_float_equal((double)result.clients[c].ran /
							   (double)result.ran,
						   traits[c].share / weights, 0.01);
			sim_result_deinit(&result);
		}
	}
}

/* Clients with long and short work, and half of the GPU's capacity together. */
static void long_and_short(void)
{
	random_trace(0);
	for (size_t c = 0; c < trace.n_clients; c++) {
		struct trace_client *client = &traits[c];
		client->level = 0;
		client->share = 100;
		client->always = false;
		client->launch = 0;
		client->work = c % 2 ? 20 * MS : MS;
		client->every = 2 * trace.n_clients * client->work;
	}
}

/* Of all clients, added up. */
static double slowdown_of(const char *policy, const struct sim_options *options)
{
	struct sim_result result;
	double slowdown = 0;

	run(policy, *options, &result);
	for (size_t c = 0; c < result.n; c++)
		slowdown +=
			(double)result.clients[c].turnaround / (double)(result.clients[c].work + 1);
	sim_result_deinit(&result);
	return slowdown;
}

/* hpf among same-level clients is shortest remaining time first. Its slowdown is less than that of
 * first come first served, which is `static` with equal shares. whpf's is hpf's, as clients stay
 * within their shares here. */
static void check_shortest_first(void)
{
	double hpf[2] = {0}, fcfs[2] = {0}, whpf[2] = {0};

	for (unsigned i = 0; i < 20; i++) {
		struct sim_options options = options_for(20000 * MS);
		unsigned mps = i % 2;
		long_and_short();
		options.mps = mps;
		options.look = options.late = 0;
		options.settings.aging = POLICY_NEVER;
		hpf[mps] += slowdown_of("hpf", &options);
		fcfs[mps] += slowdown_of("static", &options);
		whpf[mps] += slowdown_of("whpf", &options);
	}
	for (unsigned mps = 0; mps < 2; mps++) {
		assert_true(hpf[mps] < fcfs[mps]);
		assert_true(whpf[mps] < 1.02 * hpf[mps]);
	}
}

/* The first two seeds are whpf's worst of 3000, with time slices and under MPS. */
static void test_shortest_first(void **unused)
{
	const uint64_t seeds[] = {7095425, 4355451, state};

	(void)unused;
	for (size_t i = 0; i < countof(seeds); i++) {
		state = seeds[i];
		check_shortest_first();
	}
}

/* Under MPS no client is held for launches that are no longer than a switch costs, and the GPU is
 * never without work. With time slices one client runs at a time. */
static void test_short_launches(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 20; i++) {
		struct sim_options options = options_for(2000 * MS);
		struct sim_result result;
		options.mps = i % 2;
		random_trace(16);
		for (size_t c = 0; c < trace.n_clients; c++) {
			traits[c].evict = 0;
			traits[c].launch = 1 + below(options.settings.cost);
		}
		run("hpf", options, &result);
		if (options.mps)
			assert_int_equal(result.holds + result.wasted, 0);
		else
			assert_true(result.holds > 0);
		sim_result_deinit(&result);
	}
}

static void find_policies(void)
{
	static const struct policy *const all[] = {
#define POLICY(name) &policy_##name,
#include "policy/policies.def"
#undef POLICY
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!all[i]->never_holds)
			names[n_policies++] = all[i]->name;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_preempted),
		cmocka_unit_test(test_work_conserving),
		cmocka_unit_test(test_same_seed_same_result),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_shortest_first),
		cmocka_unit_test(test_short_launches),
	};
	const char *seed = getenv("SEED");

	find_policies();
	state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
	printf("# SEED=%llu\n", (unsigned long long)state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
