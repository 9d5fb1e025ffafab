/* Queues of kernels under the policy coexec: how much sooner they are done than in sequence. SEED=N
 * repeats a run. */
#include "coexec-gpu.h"

#include <math.h>
#include <string.h>

#include "weir/base.h"

static double mean_of(unsigned runs, uint64_t work)
{
	double sum = 0;

	for (unsigned i = 0; i < runs; i++)
		sum += run_queue(work);
	return sum / runs;
}

/* Nothing is known at first. */
static void test_queues(void **unused)
{
	double first, later, new_clients;

	(void)unused;
	first = run_queue(1000 * MS);
	mean_of(4, 3000 * MS);
	later = mean_of(4, 1000 * MS);
	new_clients = mean_of(10, 150 * MS);
	print_message(
		"a queue of kernels of 1 s: %.3f of sequential at first, %.3f later; of 150 ms, "
		"from new clients, later: %.3f\n",
		first, later, new_clients);
	assert_true(first > 0.95);
	assert_true(later > 1.1);
	assert_true(new_clients > 1.1);
}

/* As the experiment begins: nothing is known, and no pair meets for as long as its search takes.
 * What searches that did not end have found is not lost. */
static void test_short_queues_learn(void **unused)
{
	double sum = 0;

	(void)unused;
	for (unsigned i = 0; i < 4; i++) {
		memset(&world.found, 0, sizeof(world.found));
		sum += mean_of(13, 150 * MS);
	}
	print_message("the first 13 queues of kernels of 150 ms: %.3f of sequential on average\n",
		      sum / 4);
	assert_true(sum / 4 > 1.15);
}

/* Short queues lose nothing by what is tried. */
static void test_short_queues(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 10; i++) {
		memset(&world.found, 0, sizeof(world.found));
		assert_true(run_queue(150 * MS) > 0.9);
	}
}

/* Only pairs of unlike kernels are known, as after the experiment's earlier parts. */
static void test_queues_after_pairs(void **unused)
{
	static struct coexec_memory known;
	double sum = 0, least = INFINITY;
	unsigned n = 0;

	(void)unused;
	run_all_pairs();
	known = world.found;
	for (; n < 20; n++) {
		world.found = known;
		double now = run_queue(150 * MS);
		sum += now;
		least = fmin(least, now);
	}
	print_message("a queue of kernels of 150 ms, when pairs are known: %.3f of sequential on "
		      "average, %.3f at least\n",
		      sum / n, least);
	assert_true(sum / n > 1.22);
}

/* Short work that comes after a pause tries no sets that seldom gain: it would not last until that
 * is repaid. */
static void test_short_queue_after_a_pause(void **unused)
{
	(void)unused;
	run_all_pairs();
	run_queue(150 * MS);

	for (unsigned i = 0; i < 5; i++) {
		pass(5000 * MS);
		come(150 * MS);
		assert_true(finish(150 * MS) > 1.2);
		assert_int_equal(plan()->searches, 0);
	}
}

/* Launches that were queued have the workers of the former turn. So a turn is many times as long as
 * these take. */
static void test_turns_repay_the_change(void **unused)
{
	unsigned turns = 0;

	(void)unused;
	run_all_pairs();
	begin(1);
	for (unsigned i = 0; i < N; i++)
		world.stays[i] = true;
	for (uint64_t end = world.now + 6000 * MS; world.now < end;) {
		uint64_t since = plan()->turn_since, changed_in = plan()->changed_in;
		bool pair = plan()->n == 2;
		step();
		if (!pair || plan()->turn_since == since)
			continue;
		turns++;
		assert_in_range(world.now - since, smaller(15 * changed_in, 1900 * MS), UINT64_MAX);
	}
	assert_in_range(turns, 5, 60);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_queues),
		WORLD_TEST(test_short_queues_learn),
		WORLD_TEST(test_short_queues),
		WORLD_TEST(test_queues_after_pairs),
		WORLD_TEST(test_short_queue_after_a_pause),
		WORLD_TEST(test_turns_repay_the_change),
	};

	return run_world_tests(tests);
}
