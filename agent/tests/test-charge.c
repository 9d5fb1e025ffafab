/* The invariants of charge.h, on random sequences of reports, and the rules one by one. SEED=N
 * repeats a run. */
#include "policy/charge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define US      1000ull
#define MS      1000000ull
#define CLIENTS 3

static uint64_t state;

static uint64_t below(uint64_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

/* One level of a GPU. All is in ns. */
static struct level {
	struct client {
		struct charge_state charge;
		uint64_t executed; /* as it says */
		uint64_t by_clock, extra, refund, ran;
	} clients[CLIENTS];
	uint64_t pool, now;
	struct charge_run run; /* of every client's reports */
	uint64_t kernel;
	bool measured;
} level;

static int set_up(void **unused)
{
	(void)unused;
	memset(&level, 0, sizeof(level));
	level.now = 1000 * MS;
	/* Kernels so long that no report is compared with the clock. */
	level.kernel = 1000 * MS;
	level.run = (struct charge_run){.shared = true, .contended = true, .allowed = 10 * MS};
	return 0;
}

static struct charges report(struct client *client)
{
	struct charge_report report = {.executed = client->executed,
				       .kernel = level.kernel,
				       .measured = level.measured,
				       .now = level.now};
	struct charges charges = charge_report(&client->charge, &level.pool, &report, &level.run);

	client->ran += charges.ran;
	client->extra += charges.extra;
	client->refund += charges.refund;
	return charges;
}

static void pass(struct client *current, uint64_t ns)
{
	level.now += ns;
	current->by_clock += ns;
	charge_by_clock(&current->charge, ns);
}

/* What it has to pay for, all in all. */
static uint64_t paid(const struct client *client)
{
	return client->by_clock + client->extra - client->refund;
}

/* A client that the agent knows, and that has run before. */
static void come(struct client *client)
{
	client->executed = 1 + below(1000 * MS);
	report(client);
}

static void check_client(const struct client *client)
{
	const struct charge_state *charge = &client->charge;

	assert_int_equal(paid(client), client->ran + charge->credit + charge->by_clock);
	/* Else a limit was reached. */
	assert_true(charge->credit < CHARGE_CREDIT_MAX);
}

/* Clients that report the truth, late and in lumps, and whose kernels run on in others' runs for up
 * to 3 ms: each nanosecond is charged once, to the client that ran. */
static void test_each_nanosecond_is_charged_once(void **unused)
{
	uint64_t ran[CLIENTS] = {0}, leaving = 0;
	unsigned current = 0, last = 0;

	(void)unused;
	for (unsigned i = 0; i < CLIENTS; i++)
		come(&level.clients[i]);
	for (unsigned step = 0; step < 40000; step++) {
		for (unsigned i = 0; i < CLIENTS; i++) {
			struct client *client = &level.clients[i];
			if (below(3) == 0) {
				client->executed += ran[i];
				ran[i] = 0;
			}
			report(client);
			check_client(client);
		}
		if (below(20) == 0) {
			last = current;
			current = (unsigned)below(CLIENTS);
			leaving = below(4) * MS;
		}
		uint64_t ns = below(500 * US);
		ran[leaving ? last : current] += ns;
		leaving -= ns < leaving ? ns : leaving;
		pass(&level.clients[current], ns);
	}
	uint64_t all = 0;
	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *client = &level.clients[i];
		/* What is not reported yet is at most what the credit allows. */
		assert_in_range(paid(client) - client->ran, 0, CHARGE_CREDIT_MAX);
		all += paid(client);
	}
	assert_in_range(all, level.now - 1000 * MS, level.now - 1000 * MS + level.pool);
}

/* Whatever clients report: together they never get back more than they admit to have run. */
static void test_lies_gain_nothing(void **unused)
{
	(void)unused;
	for (unsigned step = 0; step < 100000; step++) {
		struct client *client = &level.clients[below(CLIENTS)];
		uint64_t since = level.now - client->charge.reported_at;
		client->executed = below(4) ? client->executed + below(30 * MS)
					    : below(UINT32_MAX) << below(33);
		level.kernel = below(2 * MS);
		level.run = (struct charge_run){.shared = below(4) > 0,
						.current = below(2),
						.contended = below(2),
						.started = level.now - below(20 * MS),
						.used = below(10 * MS),
						.allowed = below(40 * MS)};
		assert_in_range(report(client).extra, 0, since);
		pass(&level.clients[below(CLIENTS)], below(2 * MS));
		uint64_t extra = 0, refund = 0;
		for (unsigned i = 0; i < CLIENTS; i++) {
			extra += level.clients[i].extra;
			refund += level.clients[i].refund;
			assert_in_range(level.clients[i].charge.credit, 0, CHARGE_CREDIT_MAX);
		}
		assert_in_range(refund + level.pool, refund, extra);
		assert_in_range(level.pool, 0, CHARGE_POOL_MAX);
	}
}

static void test_what_a_client_ran_before_is_not_charged(void **unused)
{
	struct client *client = &level.clients[0];

	(void)unused;
	client->executed = 3600000 * MS;
	assert_int_equal(report(client).extra, 0);
	level.now += 10 * MS;
	client->executed += 4 * MS;
	assert_int_equal(report(client).extra, 4 * MS);
	/* A counter that falls says nothing. */
	client->executed -= 2 * MS;
	level.now += 10 * MS;
	assert_int_equal(report(client).ran, 0);
	client->executed += 5 * MS;
	assert_int_equal(report(client).extra, 3 * MS);
}

/* A refund is time that another client was charged for. */
static void test_refunds_come_from_the_pool(void **unused)
{
	struct client *one = &level.clients[0], *other = &level.clients[1];

	(void)unused;
	come(one);
	come(other);
	pass(one, 5 * MS);
	other->executed += 3 * MS; /* its kernels ran on */
	assert_int_equal(report(other).extra, 3 * MS);
	one->executed += MS;
	assert_int_equal(report(one).refund, 3 * MS);
	assert_int_equal(one->charge.credit, MS);
	/* Its kernel has ended, late: the credit pays. */
	level.now += MS;
	one->executed += MS;
	assert_int_equal(report(one).extra, 0);
	assert_int_equal(one->charge.credit, 0);
	assert_int_equal(paid(one) + paid(other), 5 * MS);
}

/* No other client wants the GPU: nothing to charge, nothing to refund. */
static void test_alone_nothing_is_extra(void **unused)
{
	struct client *client = &level.clients[0];

	(void)unused;
	come(client);
	level.run.shared = false;
	level.now += 10 * MS;
	client->executed += 10 * MS;
	assert_int_equal(report(client).extra, 0);
	assert_int_equal(level.pool, 0);
}

/* Runs @ms with a report of @reports ns each millisecond; what the last one comes to. */
static uint64_t predict(unsigned ms, uint64_t reports)
{
	struct client *client = &level.clients[0];
	uint64_t ran = 0;

	come(client);
	level.run = (struct charge_run){.shared = true,
					.current = true,
					.contended = true,
					.started = level.now - 2 * MS,
					.allowed = 1000 * MS};
	for (unsigned i = 0; i < ms; i++) {
		pass(client, MS);
		level.run.used += MS;
		client->executed += reports;
		ran = report(client).ran;
	}
	return ran;
}

static void test_predictions_are_put_in_terms_of_the_clock(void **unused)
{
	static const struct {
		uint64_t kernel;
		unsigned ms;
		uint64_t reports, ran;
	} cases[] = {
		{100 * US, 100, MS * 13 / 10, MS},
		{100 * US, 100, MS * 8 / 10, MS},
		{100 * US, 100, 5 * MS, 5 * MS / 2},         /* no more than half, */
		{100 * US, 100, MS / 4, MS / 2},             /* or twice */
		{100 * US, 100, MS + MS / 40, MS + MS / 40}, /* as good as exact */
		{100 * US, 10, MS * 13 / 10, MS * 13 / 10},  /* not known yet */
		{300 * MS, 100, MS * 13 / 10, MS * 13 / 10}, /* too few kernels in a run */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up(unused);
		level.kernel = cases[i].kernel;
		assert_int_equal(predict(cases[i].ms, cases[i].reports), cases[i].ran);
	}
}

/* Event loops say how long they ran. What their reports lack of a run is late, and comes later. */
static void test_measured_time_is_the_clocks(void **unused)
{
	struct client *client = &level.clients[0];

	(void)unused;
	level.kernel = 100 * US;
	level.measured = true;
	assert_int_equal(predict(100, MS * 9 / 10), MS * 9 / 10);
	level.now += 9 * MS;
	client->executed += 9 * MS;
	assert_int_equal(report(client).ran, 9 * MS);
	assert_int_equal(client->charge.clock_ratio.by_clock, 0);
}

/* After a while without comparisons reports are taken as they are. */
static void test_old_comparisons_do_not_count(void **unused)
{
	const uint64_t pauses[] = {400 * MS, 401 * MS}; /* after 99 ms */
	struct client *client = &level.clients[0];

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		set_up(unused);
		level.kernel = 100 * US;
		assert_int_equal(predict(100, MS * 13 / 10), MS);
		level.run.current = false;
		level.now += pauses[i];
		client->executed += 13 * MS;
		assert_int_equal(report(client).ran, i ? 13 * MS : 10 * MS);
	}
}

/* Not close to a run's begin, nor to its end. */
static void test_where_a_run_is_compared(void **unused)
{
	static const struct {
		uint64_t begun, left; /* as of the report before */
		bool compared;
	} cases[] = {
		{2 * MS, 20 * MS, true},
		{MS, 20 * MS, false},
		{2 * MS, 2 * MS, true},
		{2 * MS, 2 * MS - 1, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client *client = &level.clients[0];
		set_up(unused);
		come(client);
		level.kernel = 10 * US;
		level.run.current = true;
		level.run.started = level.now - cases[i].begun;
		level.run.used = cases[i].begun + MS;
		level.run.allowed = cases[i].begun + cases[i].left;
		pass(client, MS);
		client->executed += MS;
		report(client);
		assert_int_equal(client->charge.clock_ratio.by_clock != 0, cases[i].compared);
	}
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_each_nanosecond_is_charged_once),
		TEST(test_lies_gain_nothing),
		TEST(test_what_a_client_ran_before_is_not_charged),
		TEST(test_refunds_come_from_the_pool),
		TEST(test_alone_nothing_is_extra),
		TEST(test_predictions_are_put_in_terms_of_the_clock),
		TEST(test_measured_time_is_the_clocks),
		TEST(test_old_comparisons_do_not_count),
		TEST(test_where_a_run_is_compared),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
	printf("# SEED=%llu\n", (unsigned long long)state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
