/* Single runs of clients on the run queues: how long they are, when they begin, what they owe. */
#include "policy/run-queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/base.h"

#define MS 1000000ull

static struct run_queue_entry clients[3];

static void hold(struct run_queues *queues, struct run_queue_entry *client, bool held)
{
	(void)queues;
	assert_int_equal(client->held, held);
}

/* A client that comes from another level brings no debts: it is as one that begins. */
static void test_change_of_level(void **unused)
{
	static const char *const fair[] = {"ffs", "wfq", "whpf"};

	(void)unused;
	for (size_t policy = 0; policy < countof(fair); policy++) {
		struct run_queue_entry *moves = &clients[0], news = {.weight = 100};
		struct run_queues queues;
		uint64_t now = 1, ran[2] = {0};
		run_queues_init(&queues, policy_find(fair[policy]), &policy_defaults, hold);
		for (unsigned i = 0; i < 3; i++) {
			clients[i] = (struct run_queue_entry){.weight = 100, .level = i < 2};
			run_queues_add(&queues, &clients[i]);
			run_queues_work(&queues, &clients[i], 1, POLICY_NEVER, now);
		}
		run_queues_ran(moves, 1000000 * MS);
		run_queues_change(&queues, moves, &news, now);
		for (unsigned i = 0; i < 1000; i++) {
			run_queues_decide(&queues, now += MS);
			struct run_queue_entry *runs = queues.levels[0].current;
			ran[runs == moves] += MS;
			run_queues_ran(runs, MS);
		}
		assert_in_range(ran[1], 400 * MS, 600 * MS);
	}
}

/* wfq: two clients that always have work, and one with an objective. The client that makes room for
 * it loses no part of its run, and the run is as long as without it. */
static void test_rest_of_run(void **unused)
{
	const uint64_t slo = 5 * MS, quantum = policy_defaults.quantum;
	struct run_queue_entry *asks = &clients[2];
	struct run_queues queues;
	uint64_t now = 1;

	(void)unused;
	run_queues_init(&queues, policy_find("wfq"), &policy_defaults, hold);
	for (unsigned i = 0; i < 3; i++) {
		clients[i] = (struct run_queue_entry){.weight = 100, .slo = i == 2 ? slo : 0};
		run_queues_add(&queues, &clients[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		run_queues_work(&queues, &clients[i], 1, 1000 * MS, now);
	run_queues_decide(&queues, now);
	const struct run_queue *queue = &queues.levels[0];
	const struct run_queue_entry *first = queue->current;
	assert_int_equal(queue->allowed, quantum);

	run_queues_work(&queues, asks, 1, MS, now);
	assert_true(run_queues_decide(&queues, now) <= now + slo);
	assert_ptr_equal(queue->current, first);
	run_queues_ran(&clients[first - clients], slo);
	now += slo;
	run_queues_decide(&queues, now);
	assert_ptr_equal(queue->current, asks);
	run_queues_ran(asks, MS);
	run_queues_work(&queues, asks, 0, 0, now += MS);
	run_queues_decide(&queues, now);
	assert_ptr_equal(queue->current, first);
	assert_int_equal(queue->allowed, quantum - slo);
	run_queues_ran(&clients[first - clients], quantum - slo);
	run_queues_decide(&queues, now + quantum - slo);
	assert_ptr_not_equal(queue->current, first);
	assert_int_equal(queue->allowed, quantum);
}

/* A client comes a twentieth of its objective sooner than it must, and sooner still where the
 * hardware has stopped it, because then it runs later. */
static void test_lead_of_an_objective(void **unused)
{
	const uint64_t slo = 5 * MS;
	uint64_t due[2];

	(void)unused;
	for (unsigned i = 0; i < 2; i++) {
		struct run_queues queues;
		run_queues_init(&queues, policy_find("wfq"), &policy_defaults, hold);
		clients[0] = (struct run_queue_entry){.weight = 100};
		clients[1] = (struct run_queue_entry){.weight = 100, .slo = slo};
		run_queues_add(&queues, &clients[0]);
		run_queues_add(&queues, &clients[1]);
		struct run_queue_entry news = clients[1];
		news.lag = i * MS;
		run_queues_change(&queues, &clients[1], &news, 1);
		run_queues_work(&queues, &clients[0], 1, 1000 * MS, 1);
		run_queues_decide(&queues, 1);
		run_queues_work(&queues, &clients[1], 1, MS, 1);
		due[i] = run_queues_decide(&queues, 1);
		assert_ptr_equal(queues.levels[0].current, &clients[0]);
	}
	assert_int_equal(due[0], 1 + slo - slo / 20 - policy_defaults.late - policy_defaults.cost);
	assert_int_equal(due[1], due[0] - MS);
}

/* One whose work is done sooner than others could be stopped and let go on does not wait until it
 * must. But it gets no more turns by that than if it waited. */
static void test_quick_work(void **unused)
{
	const uint64_t slo = 5 * MS, first = 100 * MS, second = first + MS;
	const uint64_t wait = slo - slo / 20 - policy_defaults.late - policy_defaults.cost;
	struct run_queues queues;

	(void)unused;
	run_queues_init(&queues, policy_find("wfq"), &policy_defaults, hold);
	clients[0] = (struct run_queue_entry){.weight = 100};
	clients[1] = (struct run_queue_entry){.weight = 100, .slo = slo, .quick = true};
	run_queues_add(&queues, &clients[0]);
	run_queues_add(&queues, &clients[1]);
	run_queues_work(&queues, &clients[0], 1, 1000 * MS, first);
	run_queues_decide(&queues, first);
	run_queues_work(&queues, &clients[1], 1, MS / 2, first);
	run_queues_decide(&queues, first);
	assert_ptr_equal(queues.levels[0].current, &clients[1]);
	assert_true(clients[0].held);
	run_queues_work(&queues, &clients[1], 0, 0, second);
	run_queues_decide(&queues, second);
	assert_ptr_equal(queues.levels[0].current, &clients[0]);
	run_queues_work(&queues, &clients[1], 1, MS / 2, second);
	assert_int_equal(run_queues_decide(&queues, second), first + wait);
	assert_ptr_equal(queues.levels[0].current, &clients[0]);
	run_queues_decide(&queues, first + wait);
	assert_ptr_equal(queues.levels[0].current, &clients[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change_of_level),
		cmocka_unit_test(test_rest_of_run),
		cmocka_unit_test(test_lead_of_an_objective),
		cmocka_unit_test(test_quick_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
