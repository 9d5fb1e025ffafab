/* How many launches a comparison takes: a model of a program that launches one kernel for ever,
 * alone or alternating with same-level clients, on a virtual clock. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS         1000000u
#define SAME_LEVEL 3u /* clients with equal quanta, the program included */
#define FOR_EVER   2000u
#define MANY       (1000 * AT_ONCE) /* blocks */
#define CANDIDATES 8u               /* of a kernel in all forms, at least */

static uint64_t now = 1;

uint64_t __wrap_client_now(void);
uint64_t __wrap_client_now(void)
{
	return now;
}

struct program {
	uint64_t native, form; /* ns of a launch */
	uint64_t quantum;      /* ns; 0: the program is alone */
	struct geometry geometry;
	uint64_t ran; /* ns */
	unsigned launches;
};

static int client_begin(void **state)
{
	static const struct level_binding lowest = {.level = 0};

	(void)state;
	tuning_init();
	client = &clients[0];
	atomic_store(&client->binding, &lowest);
	return 0;
}

/* @hundredths: time of every form, relative to the native one. */
static struct program program_of(uint64_t native, unsigned hundredths)
{
	static struct rewritten rewritten;

	rewritten = in_forms(1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE | 1u << WEIR_SLICED);
	rewritten.variants[WEIR_PERSISTENT][1] = (struct variant){(CUfunction)(uintptr_t)NULL_WIDE};
	atomic_store(&waiters_of(client)->waiting, WAITING_NOBODY);
	return (struct program){
		.native = native,
		.form = native * hundredths / 100,
		.geometry = {kernel_of(native, &rewritten), {MANY, 1, 1}, {64, 1, 1}}};
}

static void meets_same_level(struct program *program, uint64_t quantum)
{
	atomic_store(&waiters_of(client)->waiting, WAITING_SAME_LEVEL);
	program->quantum = quantum;
}

static struct kernel_time *kernel_time(const struct program *program)
{
	return kernel_find(kernel_key(&program->geometry));
}

static const struct tuned_kernel *tuned_of(const struct program *program)
{
	return atomic_load(&kernel_time(program)->tuned);
}

static void work(void)
{
	if (tuning_pending(client))
		tuning_work(client);
}

/* A form is evicted at the end of the quantum. */
static void launch(struct program *program)
{
	struct kernel_time *kernel = kernel_time(program);
	uint64_t key = kernel_key(&program->geometry);
	struct launch_decision decision =
		tuning_decide(atomic_load(&kernel->tuned), client, key,
			      &(struct autotune_launch){.native = program->native,
							.short_alone = GATE_INTERVAL_CONTENDED,
							.short_waited = GATE_INTERVAL_CONTENDED});
	uint64_t ns = decision.config ? program->form : program->native, begin = program->ran;
	bool over = program->quantum && begin / program->quantum != (begin + ns) / program->quantum;
	struct sample sample = {
		.of = {.kernel = kernel,
		       .key = key,
		       .geometry = program->geometry,
		       .formable = true,
		       .tuned = decision.tuned,
		       .candidate = decision.candidate},
		.flight = !decision.config ? SAMPLE_PLAIN
			  : over           ? SAMPLE_EVICTED
					   : SAMPLE_CLEAN,
		.sliced = decision.config && decision.config->form == WEIR_SLICED,
		.disturbed = over,
	};

	assert_true(program->launches++ < FOR_EVER);
	program->ran += ns;
	now += program->quantum ? SAME_LEVEL * ns : ns;
	tuning_learn(client, &sample, decision.config && over ? SAME_LEVEL * ns : ns,
		     program->quantum != 0);
	work();
}

static bool is_settled(const struct program *program)
{
	const struct tuned_kernel *tuned = tuned_of(program);

	return tuned && tuned->tuner.state == AUTOTUNE_SETTLED;
}

/* Number of further launches. */
static unsigned settles_within(struct program *program)
{
	unsigned before = program->launches;

	while (!is_settled(program))
		launch(program);
	return program->launches - before;
}

/* Launches until this candidate is compared. */
static void tries(struct program *program, uint32_t candidate)
{
	while (!tuned_of(program) ||
	       atomic_load(&tuned_of(program)->tuner.in_use[WAITING_NOBODY]) != candidate)
		launch(program);
}

static bool is_confirmed(const struct tuned_kernel *tuned)
{
	for (size_t i = 1; tuned && i < tuned->tuner.n; i++) {
		if (tuned->tuner.candidates[i].confirming)
			return true;
	}
	return false;
}

/* Launches until the best candidate is being confirmed. */
static void confirms(struct program *program)
{
	while (!is_confirmed(tuned_of(program)))
		launch(program);
}

static void long_kernels_need_fewer_samples(void **state)
{
	static const struct {
		uint64_t native, quantum;
		unsigned least, most; /* launches */
	} cases[] = {
		{1 * MS, 0, 160, 200},       {5 * MS, 0, 100, 125},
		{16 * MS, 0, 80, 105},       {1 * MS, 10 * MS, 160, 200},
		{5 * MS, 10 * MS, 110, 160}, {16 * MS, 20 * MS, 80, 120},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		struct program program = program_of(cases[i].native, 104);
		if (cases[i].quantum)
			meets_same_level(&program, cases[i].quantum);
		assert_in_range(settles_within(&program), cases[i].least, cases[i].most);
		assert_true(tuned_of(&program)->tuner.n > CANDIDATES);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		tuning_forget(client);
	}
}

static void same_level_clients_do_not_wait_long_for_native_launches(void **state)
{
	(void)state;
	for (uint64_t native = 3 * MS; native <= 16 * MS; native += MS) {
		struct program program = program_of(native, 104);
		uint64_t begin = now;
		meets_same_level(&program, 4 * native);
		settles_within(&program);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		assert_in_range(now - begin, 0, 6000ull * MS);
		tuning_forget(client);
	}
}

static void nothing_is_confirmed_while_somebody_waits(void **state)
{
	static const enum waiting by[] = {WAITING_SAME_LEVEL, WAITING_URGENT};

	(void)state;
	for (size_t i = 0; i < countof(by); i++) {
		struct program program = program_of(5 * MS, 101);
		confirms(&program);
		meets_same_level(&program, 20 * MS);
		atomic_store(&waiters_of(client)->waiting, by[i]);
		assert_in_range(settles_within(&program), 1, by[i] == WAITING_URGENT ? 150 : 80);
		assert_int_not_equal(tuned_of(&program)->tuner.in_use[by[i]], 0);
		assert_int_not_equal(tuned_of(&program)->tuner.in_use[WAITING_NOBODY], 0);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		tuning_forget(client);
	}
}

static void a_candidate_good_enough_for_same_level_clients_ends_the_comparison(void **state)
{
	struct program program = program_of(5 * MS, 101);

	(void)state;
	tries(&program, 3);
	const struct tuned_kernel *tuned = tuned_of(&program);
	while (!tuned->tuner.candidates[3].clean)
		launch(&program);
	meets_same_level(&program, 20 * MS);
	assert_int_equal(settles_within(&program), 1);
	assert_in_range(tuned->tuner.in_use[WAITING_SAME_LEVEL], 1, 2);
	assert_int_equal(tuned->tuner.postponed, 3);

	/* They wait no more: the comparison resumes with new samples. */
	atomic_store(&waiters_of(client)->waiting, WAITING_NOBODY);
	program.quantum = 0;
	work();
	assert_int_equal(tuned->tuner.state, AUTOTUNE_COMPARING);
	assert_int_equal(tuned->tuner.in_use[WAITING_NOBODY], 3);
	assert_int_equal(tuned->tuner.candidates[3].clean, 0);
	settles_within(&program);
	assert_int_equal(tuned->tuner.postponed, 0);
	tuning_forget(client);
}

static void other_candidates_do_not_end_the_comparison(void **state)
{
	struct program program = program_of(5 * MS, 104);

	(void)state;
	tries(&program, 3);
	meets_same_level(&program, 20 * MS);
	assert_in_range(settles_within(&program), 50, 150);
	assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
	tuning_forget(client);
}

/* The program changed it, for instance its attributes. The native launches are no samples of a
 * form. */
static void a_kernel_that_lost_its_forms_is_settled_as_native(void **state)
{
	struct program program = program_of(5 * MS, 101);
	CUfunction handle = (CUfunction)program.geometry.function;

	(void)state;
	tries(&program, 3);
	atomic_store(&function_find(client, handle)->rewritten, NULL);
	assert_in_range(settles_within(&program), 350, 500);
	for (enum waiting waiting = WAITING_NOBODY; waiting < WAITING_COUNT; waiting++)
		assert_int_equal(tuned_of(&program)->tuner.in_use[waiting], 0);
	tuning_forget(client);
}

static void active_kernels_are_counted(void **state)
{
	struct program one = program_of(5 * MS, 101), other = program_of(1 * MS, 101);

	(void)state;
	assert_int_equal(tuning_count(client), 0);
	launch(&one);
	assert_int_equal(tuning_count(client), 1);
	assert_int_equal(tuning_count(&clients[1]), 0);
	tries(&other, 2);
	assert_int_equal(tuning_count(client), 2);
	/* The first kernel is idle. */
	for (uint64_t begin = now; now - begin < 1100ull * MS;)
		launch(&other);
	assert_true(is_settled(&other));
	assert_int_equal(tuning_count(client), 0);
	launch(&one);
	assert_int_equal(tuning_count(client), 1);
	settles_within(&one);
	assert_int_equal(tuning_count(client), 0);
	tuning_forget(client);
}

static void a_kernel_that_needs_no_form_is_not_counted(void **state)
{
	static const struct level_binding above = {.level = 1};
	struct program program = program_of(MS / 2, 101);

	(void)state;
	atomic_store(&client->binding, &above);
	launch(&program);
	assert_int_equal(tuned_of(&program)->tuner.state, AUTOTUNE_WANTED);
	assert_int_equal(tuning_count(client), 0);
	atomic_store(&waiters_of(client)->waiting, WAITING_URGENT);
	assert_int_equal(tuning_count(client), 1);
	tuning_forget(client);
	client_begin(state);
}

struct natives {
	unsigned natives, launches; /* of them all, until the kernel is settled */
};

/* While @waiting, a kernel of @ns in forms of the same length. At most @most launches. */
static struct natives natives_until_settled(struct autotuner *tuner, struct autotune_situation *at,
					    uint64_t ns, unsigned most)
{
	struct natives count = {0};

	while (tuner->state != AUTOTUNE_SETTLED && count.launches < most) {
		struct launch_decision d =
			autotune_decide(tuner, at, &(struct autotune_launch){.native = ns});
		at->now += ns;
		autotune_sample(tuner, at,
				&(struct autotune_sample){.candidate = d.candidate, .ns = ns});
		count.natives += d.candidate == 0;
		count.launches++;
	}
	return count;
}

static void long_native_launches_are_rare_while_higher_levels_wait(void **state)
{
	static const struct autotune_settings usual = {.latency = LATENCY_NS,
						       .forced = WEIR_FORM_COUNT};
	static const struct kernel_facts facts = {
		.sms = 10,
		.resident = 80,
		.builds = {[WEIR_PERSISTENT] = {{.resident = 60}, {.resident = 40}}}};
	static const unsigned grid[3] = {100000, 1, 1};
	struct autotune_situation at = {.now = 1, .waiting = WAITING_URGENT};
	static struct autotuner tuner;

	(void)state;
	autotune_init(&tuner, &usual, grid, 500 * MS, 1);
	autotune_forms(&tuner, &at, &facts);
	struct natives count = natives_until_settled(&tuner, &at, 500 * MS, 1000);
	assert_int_equal(tuner.state, AUTOTUNE_SETTLED);
	assert_int_equal(count.natives, 1);
	assert_in_range(count.launches, 100, 1000);

	autotune_init(&tuner, &usual, grid, 2000 * MS, 1);
	autotune_forms(&tuner, &at, &facts);
	count = natives_until_settled(&tuner, &at, 2000ull * MS, 100);
	assert_int_equal(count.launches, 100);
	assert_int_equal(count.natives, 0);
	at.waiting = WAITING_NOBODY;
	natives_until_settled(&tuner, &at, 2000ull * MS, 1000);
	assert_int_equal(tuner.state, AUTOTUNE_SETTLED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_kernels_need_fewer_samples),
		cmocka_unit_test(same_level_clients_do_not_wait_long_for_native_launches),
		cmocka_unit_test(nothing_is_confirmed_while_somebody_waits),
		cmocka_unit_test(
			a_candidate_good_enough_for_same_level_clients_ends_the_comparison),
		cmocka_unit_test(other_candidates_do_not_end_the_comparison),
		cmocka_unit_test(a_kernel_that_lost_its_forms_is_settled_as_native),
		cmocka_unit_test(active_kernels_are_counted),
		cmocka_unit_test(a_kernel_that_needs_no_form_is_not_counted),
		cmocka_unit_test(long_native_launches_are_rare_while_higher_levels_wait),
	};

	driver_load();
	return cmocka_run_group_tests(tests, client_begin, NULL);
}
