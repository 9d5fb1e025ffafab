/* How long kernels are compared: a model of a program that launches one for ever, alone or in turns
 * with equals, on a virtual clock. libweir's own sources, on a driver that does nothing but be
 * observable. */
#include "formed.h"

#include "gates/gate.h"

#include "weir/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS         1000000u
#define EQUALS     3u /* that have turns as long as the program's */
#define FOR_EVER   2000u
#define MANY       (1000 * AT_ONCE) /* blocks */
#define CANDIDATES 8u               /* at least, of a kernel in all forms */

static uint64_t now = 1;

uint64_t __wrap_client_now(void);
uint64_t __wrap_client_now(void)
{
	return now;
}

struct program {
	uint64_t native, form; /* ns of a launch */
	uint64_t turn;         /* ns; 0: it is alone */
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

/* The form takes so many hundredths of the native time. */
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

static void meets_equals(struct program *program, uint64_t turn)
{
	atomic_store(&waiters_of(client)->waiting, WAITING_SAME_LEVEL);
	program->turn = turn;
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

/* One that is not over at the end of the turn is evicted then, if it can be. */
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
	bool over = program->turn && begin / program->turn != (begin + ns) / program->turn;
	struct sample sample = {
		.of = {.kernel = kernel,
		       .key = key,
		       .geometry = program->geometry,
		       .formable = true,
		       .tuned = decision.tuned,
		       .candidate = decision.config ? decision.candidate : 0},
		.flight = !decision.config ? SAMPLE_PLAIN
			  : over           ? SAMPLE_EVICTED
					   : SAMPLE_CLEAN,
		.sliced = decision.config && decision.config->form == WEIR_SLICED,
		.disturbed = over,
	};

	assert_true(program->launches++ < FOR_EVER);
	program->ran += ns;
	now += program->turn ? EQUALS * ns : ns;
	tuning_learn(client, &sample, decision.config && over ? EQUALS * ns : ns,
		     program->turn != 0);
	work();
}

static bool is_settled(const struct program *program)
{
	const struct tuned_kernel *tuned = tuned_of(program);

	return tuned && tuned->tuner.state == AUTOTUNE_SETTLED;
}

/* How many launches more it takes. */
static unsigned settles_within(struct program *program)
{
	unsigned before = program->launches;

	while (!is_settled(program))
		launch(program);
	return program->launches - before;
}

/* Alone, until this candidate, counted from 1, is tried. */
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

/* Alone, until the best is compared once more. */
static void confirms(struct program *program)
{
	while (!is_confirmed(tuned_of(program)))
		launch(program);
}

static void the_longer_a_kernel_the_fewer_launches_decide(void **state)
{
	static const struct {
		uint64_t native, turn;
		unsigned least, most; /* launches */
	} cases[] = {
		{1 * MS, 0, 160, 200},       {5 * MS, 0, 100, 125},
		{16 * MS, 0, 80, 105},       {1 * MS, 10 * MS, 160, 200},
		{5 * MS, 10 * MS, 110, 160}, {16 * MS, 20 * MS, 80, 120},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		struct program program = program_of(cases[i].native, 104);
		if (cases[i].turn)
			meets_equals(&program, cases[i].turn);
		assert_in_range(settles_within(&program), cases[i].least, cases[i].most);
		assert_true(tuned_of(&program)->tuner.n > CANDIDATES);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		tuning_forget(client);
	}
}

/* Native launches are few while equals wait, but not so few that all the others take seconds. */
static void equals_do_not_wait_long_for_native_launches(void **state)
{
	(void)state;
	for (uint64_t native = 3 * MS; native <= 16 * MS; native += MS) {
		struct program program = program_of(native, 104);
		uint64_t begin = now;
		meets_equals(&program, 4 * native);
		settles_within(&program);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		assert_in_range(now - begin, 0, 6000ull * MS);
		tuning_forget(client);
	}
}

static void nobody_waits_for_the_best_to_be_confirmed(void **state)
{
	static const enum waiting by[] = {WAITING_SAME_LEVEL, WAITING_URGENT};

	(void)state;
	for (size_t i = 0; i < countof(by); i++) {
		struct program program = program_of(5 * MS, 101);
		confirms(&program);
		meets_equals(&program, 20 * MS);
		atomic_store(&waiters_of(client)->waiting, by[i]);
		assert_in_range(settles_within(&program), 1, 80);
		assert_int_not_equal(tuned_of(&program)->tuner.in_use[by[i]], 0);
		assert_int_not_equal(tuned_of(&program)->tuner.in_use[WAITING_NOBODY], 0);
		assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
		tuning_forget(client);
	}
}

static void what_is_good_enough_for_equals_ends_a_trial(void **state)
{
	struct program program = program_of(5 * MS, 101);

	(void)state;
	tries(&program, 3);
	const struct tuned_kernel *tuned = tuned_of(&program);
	while (!tuned->tuner.candidates[3].clean)
		launch(&program);
	meets_equals(&program, 20 * MS);
	assert_int_equal(settles_within(&program), 1);
	assert_in_range(tuned->tuner.in_use[WAITING_SAME_LEVEL], 1, 2);
	assert_int_equal(tuned->tuner.postponed, 3);

	/* It is over: that one from the beginning, and all behind it. */
	atomic_store(&waiters_of(client)->waiting, WAITING_NOBODY);
	program.turn = 0;
	work();
	assert_int_equal(tuned->tuner.state, AUTOTUNE_COMPARING);
	assert_int_equal(tuned->tuner.in_use[WAITING_NOBODY], 3);
	assert_int_equal(tuned->tuner.candidates[3].clean, 0);
	settles_within(&program);
	assert_int_equal(tuned->tuner.postponed, 0);
	tuning_forget(client);
}

static void what_is_not_good_enough_for_equals_ends_none(void **state)
{
	struct program program = program_of(5 * MS, 104);

	(void)state;
	tries(&program, 3);
	meets_equals(&program, 20 * MS);
	assert_in_range(settles_within(&program), 50, 150);
	assert_int_equal(tuned_of(&program)->tuner.postponed, 0);
	tuning_forget(client);
}

static void kernels_that_are_launched_and_not_settled_are_counted(void **state)
{
	struct program one = program_of(5 * MS, 101), other = program_of(1 * MS, 101);

	(void)state;
	assert_int_equal(tuning_count(client), 0);
	launch(&one);
	assert_int_equal(tuning_count(client), 1);
	assert_int_equal(tuning_count(&clients[1]), 0);
	tries(&other, 2);
	assert_int_equal(tuning_count(client), 2);
	/* The first one is launched no more. */
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

/* Above others, and with nobody waiting, a short kernel is not compared. */
static void what_needs_no_form_is_not_counted(void **state)
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longer_a_kernel_the_fewer_launches_decide),
		cmocka_unit_test(equals_do_not_wait_long_for_native_launches),
		cmocka_unit_test(nobody_waits_for_the_best_to_be_confirmed),
		cmocka_unit_test(what_is_good_enough_for_equals_ends_a_trial),
		cmocka_unit_test(what_is_not_good_enough_for_equals_ends_none),
		cmocka_unit_test(kernels_that_are_launched_and_not_settled_are_counted),
		cmocka_unit_test(what_needs_no_form_is_not_counted),
	};

	driver_load();
	return cmocka_run_group_tests(tests, client_begin, NULL);
}
