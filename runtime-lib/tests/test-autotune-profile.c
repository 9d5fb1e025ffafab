/* The autotuner with profiles: what one process settled, the next one begins with; what may hang is
 * refused, whatever a profile says. */
#include "autotune/autotune.h"
#include "autotune/launch-config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NATIVE 5000000u /* ns */

static const struct autotune_settings usual = {.latency = LATENCY_NS, .forced = WEIR_FORM_COUNT};
static const struct autotune_settings forced = {.latency = LATENCY_NS, .forced = WEIR_RESUMABLE};
static const struct kernel_facts facts = {
	.sms = 10,
	.resident = 80,
	.builds = {[WEIR_SLICED] = {{.resident = 80}},
		   [WEIR_PERSISTENT] = {{.resident = 60}, {.resident = 40}},
		   [WEIR_RESUMABLE] = {{.resident = 40, .save_stride = 256}}},
};

static void begin(struct autotuner *tuner, unsigned blocks, uint64_t native)
{
	const unsigned grid[3] = {blocks, 1, 1};

	autotune_init(tuner, &usual, grid, native, 1);
}

/* Compares until it is settled: forms take 1.01 of the native time. */
static void compare(struct autotuner *tuner, struct autotune_situation *at)
{
	autotune_forms(tuner, at, &facts);
	for (unsigned i = 0; i < 5000 && tuner->state != AUTOTUNE_SETTLED; i++) {
		struct launch_decision d =
			autotune_decide(tuner, at, &(struct autotune_launch){.native = NATIVE});
		at->now += NATIVE;
		autotune_sample(tuner, at,
				&(struct autotune_sample){.candidate = d.candidate,
							  .ns = d.candidate ? NATIVE * 101ull / 100
									    : NATIVE});
	}
	assert_int_equal(tuner->state, AUTOTUNE_SETTLED);
}

static bool same(const struct autotuner *one, const struct autotuner *other, enum waiting waiting)
{
	const struct launch_config *left = &one->candidates[one->in_use[waiting]].config;
	const struct launch_config *right = &other->candidates[other->in_use[waiting]].config;

	return left->form == right->form && left->build == right->build &&
	       left->workers == right->workers && left->order == right->order &&
	       left->axis == right->axis && left->step == right->step &&
	       left->packed_size == right->packed_size &&
	       memcmp(&left->hidden, &right->hidden, sizeof(left->hidden)) == 0;
}

/* False: the kernel cannot be launched so. */
static bool settle(struct autotuner *tuner, const struct autotune_situation *at,
		   const struct kernel_facts *of, const struct weir_profile *profile)
{
	uint32_t in_use[WAITING_COUNT];

	if (!autotune_try_profile(tuner, of, profile, in_use))
		return false;
	autotune_settle_profile(tuner, at, in_use);
	return true;
}

static void the_next_process_begins_settled(void **state)
{
	struct autotune_situation at = {.now = 1, .lowest_level = true};
	static struct autotuner first, next;
	struct weir_profile profile;

	(void)state;
	begin(&first, 100000, NATIVE);
	assert_false(autotune_make_profile(&first, &profile));
	compare(&first, &at);
	assert_true(autotune_make_profile(&first, &profile));
	assert_int_not_equal(profile.choices[WAITING_NOBODY].form, WEIR_NATIVE);
	assert_in_range(profile.choices[WAITING_NOBODY].ratio, 1000000, 1020000);

	begin(&next, 100000, NATIVE * 11 / 10);
	assert_true(settle(&next, &at, &facts, &profile));
	assert_int_equal(next.state, AUTOTUNE_SETTLED);
	assert_int_equal(next.native, first.native);
	for (int i = 0; i < WAITING_COUNT; i++)
		assert_true(same(&first, &next, (enum waiting)i));
	struct launch_decision d =
		autotune_decide(&next, &at, &(struct autotune_launch){.native = NATIVE});
	assert_int_not_equal(d.candidate, 0);
	assert_false(d.sample);
	assert_true(d.chain >= 1);
	/* It has measured nothing, so it teaches nothing. */
	assert_false(autotune_make_profile(&next, &profile));
}

static const struct weir_profile ahead = {
	.native = NATIVE,
	.choices = {{0},
		    {.form = WEIR_SLICED, .chunk = 1000, .workers = 80, .ratio = 1010000},
		    {.form = WEIR_PERSISTENT,
		     .flags = WEIR_PROFILE_AHEAD,
		     .chunk = 4,
		     .workers = 60,
		     .ratio = 1100000}},
};

static bool takes(unsigned blocks, const struct weir_profile *profile)
{
	struct autotune_situation at = {.now = 1};
	static struct autotuner tuner;

	begin(&tuner, blocks, NATIVE);
	return settle(&tuner, &at, &facts, profile);
}

/* Blocks of a grid that fits on the GPU may wait for each other. */
static void what_may_hang_is_refused(void **state)
{
	struct weir_profile bad;

	(void)state;
	assert_true(takes(100000, &ahead));
	assert_false(takes(80, &ahead));
	bad = (struct weir_profile){.native = NATIVE, .choices = {ahead.choices[1]}};
	assert_true(takes(100000, &bad));
	assert_false(takes(80, &bad));
	bad.choices[0] = (struct weir_profile_choice){
		.form = WEIR_RESUMABLE, .chunk = 1, .workers = 5, .ratio = 1000000};
	assert_true(takes(40, &bad));
	assert_false(takes(60, &bad)); /* native blocks fit, workers do not */
	bad.choices[0].chunk = 2;
	assert_false(takes(40, &bad));
	assert_true(takes(100000, &bad));
	bad.choices[0].chunk = 1;
	bad.choices[0].flags = WEIR_PROFILE_AHEAD;
	assert_false(takes(40, &bad));
}

static void a_straight_kernel_can_be_cut(void **state)
{
	struct weir_profile profile = {
		.native = NATIVE,
		.choices = {{.form = WEIR_SLICED, .chunk = 10, .workers = 80, .ratio = 1000000}}};
	struct autotune_situation at = {.now = 1};
	struct kernel_facts straight = facts;
	static struct autotuner tuner;

	(void)state;
	straight.is_straight = true;
	begin(&tuner, 80, NATIVE);
	assert_true(settle(&tuner, &at, &straight, &profile));
	assert_int_equal(tuner.candidates[tuner.in_use[WAITING_NOBODY]].config.step, 10);
	assert_false(takes(80, &profile));
	/* In a process that has never launched it, too. */
	const unsigned grid[3] = {80, 1, 1};
	autotune_init_unknown(&tuner, &usual, grid, 1);
	assert_true(settle(&tuner, &at, &straight, &profile));
	struct launch_decision d = autotune_decide(&tuner, &at, &(struct autotune_launch){0});
	assert_int_equal(d.config->form, WEIR_SLICED);
	assert_int_equal(d.config->step, 10);
	/* It may be that not all blocks fit. */
	straight.resident = 0;
	begin(&tuner, 80, NATIVE);
	assert_false(settle(&tuner, &at, &straight, &profile));
}

/* All of a grid's blocks run, although the profile names fewer workers. */
static void a_grid_that_fits_has_a_worker_for_each_block(void **state)
{
	struct weir_profile profile = {
		.native = NATIVE,
		.choices = {{.form = WEIR_RESUMABLE, .chunk = 1, .workers = 5, .ratio = 1000000}}};
	struct autotune_situation at = {.now = 1};
	static struct autotuner tuner;

	(void)state;
	begin(&tuner, 40, NATIVE);
	assert_true(settle(&tuner, &at, &facts, &profile));
	assert_int_equal(tuner.candidates[tuner.in_use[WAITING_NOBODY]].config.workers, 40);
}

static void what_cannot_be_launched_is_refused(void **state)
{
	struct weir_profile bad;

	(void)state;
	bad = ahead;
	bad.choices[2].form = WEIR_FORM_COUNT;
	assert_false(takes(100000, &bad));
	bad = ahead;
	bad.choices[2].build = BUILDS_MAX;
	assert_false(takes(100000, &bad));
	bad = ahead;
	bad.choices[2].build = 2; /* this GPU has none */
	assert_false(takes(100000, &bad));
	bad = ahead;
	bad.choices[1].chunk = 100000; /* one slice */
	assert_false(takes(100000, &bad));
	bad.choices[1].chunk = 1; /* more slices than links */
	assert_false(takes(100000, &bad));
}

static void more_workers_than_there_are_become_fewer(void **state)
{
	struct weir_profile profile = {.native = NATIVE, .choices = {ahead.choices[2]}};
	struct autotune_situation at = {.now = 1};
	static struct autotuner tuner;

	(void)state;
	profile.choices[0].workers = INT32_MAX;
	begin(&tuner, 100000, NATIVE);
	assert_true(settle(&tuner, &at, &facts, &profile));
	assert_int_equal(tuner.candidates[tuner.in_use[WAITING_NOBODY]].config.workers, 60);
}

static void nothing_replaces_a_forced_form(void **state)
{
	struct autotune_situation at = {.now = 1};
	static struct autotuner tuner;
	const unsigned grid[3] = {100000, 1, 1};

	(void)state;
	autotune_init(&tuner, &forced, grid, NATIVE, 1);
	assert_false(settle(&tuner, &at, &facts, &ahead));
}

/* Times show it, as they do when a kernel changes: it is tuned again, without the profile. */
static void a_wrong_profile_is_found_out(void **state)
{
	struct autotune_situation at = {.now = 1, .lowest_level = true};
	static struct autotuner tuner;

	(void)state;
	begin(&tuner, 100000, NATIVE);
	assert_true(settle(&tuner, &at, &facts, &ahead));
	for (unsigned i = 0; i < OUTLIERS && tuner.state == AUTOTUNE_SETTLED; i++) {
		at.now += OUTLIERS_FOR_NS;
		autotune_sample(&tuner, &at,
				&(struct autotune_sample){.candidate = tuner.in_use[WAITING_URGENT],
							  .ns = 3 * NATIVE});
	}
	assert_int_equal(tuner.state, AUTOTUNE_WANTED);
	assert_false(settle(&tuner, &at, &facts, &ahead));
}

static void begin_unknown(struct autotuner *tuner)
{
	const unsigned grid[3] = {100000, 1, 1};

	autotune_init_unknown(tuner, &usual, grid, 1);
}

static void measure(struct autotuner *tuner, struct autotune_situation *at, uint32_t candidate,
		    uint64_t ns)
{
	at->now += ns;
	autotune_sample(tuner, at, &(struct autotune_sample){.candidate = candidate, .ns = ns});
}

/* A kernel that this process has never launched: in a form that leaves until its time is known,
 * and then as the profile says. */
static void an_unknown_kernel_begins_settled(void **state)
{
	const struct autotune_launch launch = {.native = NATIVE};
	struct autotune_situation at = {.now = 1, .lowest_level = true};
	static struct autotuner tuner;

	(void)state;
	begin_unknown(&tuner);
	assert_true(settle(&tuner, &at, &facts, &ahead));
	uint32_t urgent = tuner.in_use[WAITING_URGENT];
	assert_int_not_equal(urgent, 0);
	assert_int_equal(autotune_decide(&tuner, &at, &launch).candidate, urgent);
	measure(&tuner, &at, urgent, NATIVE * 11 / 10);
	assert_int_equal(tuner.state, AUTOTUNE_SETTLED);
	assert_int_equal(autotune_decide(&tuner, &at, &launch).candidate, 0);
	at.waiting = WAITING_URGENT;
	assert_int_equal(autotune_decide(&tuner, &at, &launch).candidate, urgent);
}

/* Unused continuations cost 4.6 us each. They are for evictions of a kernel of unknown time. */
static void a_known_kernel_has_few_continuations(void **state)
{
	const struct autotune_launch launch = {.native = NATIVE},
				     below = {.native = NATIVE, .above = true};
	struct autotune_situation at = {.now = 1, .lowest_level = true};
	static struct autotuner tuner;

	(void)state;
	for (int profiled = 0; profiled < 2; profiled++) {
		begin_unknown(&tuner);
		if (profiled)
			assert_true(settle(&tuner, &at, &facts, &ahead));
		else
			autotune_forms(&tuner, &at, &facts);
		uint32_t urgent = tuner.in_use[WAITING_URGENT];
		assert_true(tuner.evictions >= 32);
		measure(&tuner, &at, urgent, NATIVE);
		assert_int_equal(tuner.chain, 3); /* a kernel of 5 ms has no fewer */
		/* Nobody waits yet, but when somebody comes some launches are queued. */
		atomic_store(&tuner.in_use[WAITING_NOBODY], urgent);
		assert_int_equal(autotune_decide(&tuner, &at, &launch).chain, 3);
		assert_int_equal(autotune_decide(&tuner, &at, &below).chain, NATIVE / 1500000 + 1);
	}

	/* Somebody waits: evictions are likely. */
	begin_unknown(&tuner);
	assert_true(settle(&tuner, &at, &facts, &ahead));
	at.waiting = WAITING_URGENT;
	measure(&tuner, &at, tuner.in_use[WAITING_URGENT], NATIVE);
	assert_true(autotune_decide(&tuner, &at, &launch).chain >= 7);
}

static void an_unknown_kernel_of_another_time_is_tuned(void **state)
{
	struct autotune_situation at = {.now = 1, .lowest_level = true};
	static struct autotuner tuner;

	(void)state;
	begin_unknown(&tuner);
	assert_true(settle(&tuner, &at, &facts, &ahead));
	measure(&tuner, &at, tuner.in_use[WAITING_URGENT], 4 * NATIVE);
	assert_int_equal(tuner.state, AUTOTUNE_WANTED);
	assert_int_equal(tuner.native, 4 * NATIVE);
	autotune_forms(&tuner, &at, &facts);
	assert_int_equal(tuner.state, AUTOTUNE_COMPARING);
}

/* It is short, so nothing was compared. */
static void a_short_kernel_begins_natively(void **state)
{
	const struct autotune_launch launch = {.native = UNKNOWN_NS};
	struct autotune_situation at = {.now = 1, .waiting = WAITING_URGENT};
	static struct autotuner first, next;
	struct weir_profile profile;

	(void)state;
	begin_unknown(&first);
	autotune_forms(&first, &at, &facts);
	struct launch_decision d = autotune_decide(&first, &at, &launch);
	assert_int_not_equal(d.candidate, 0);
	assert_true(d.sample && d.apart);
	measure(&first, &at, d.candidate, LATENCY_NS / 5);
	assert_int_equal(first.state, AUTOTUNE_SETTLED);
	assert_true(autotune_make_profile(&first, &profile));
	assert_int_equal(profile.native, LATENCY_NS / 5);
	assert_int_equal(profile.choices[WAITING_URGENT].form, WEIR_NATIVE);

	begin_unknown(&next);
	assert_true(settle(&next, &at, &facts, &profile));
	d = autotune_decide(&next, &at, &launch);
	assert_int_equal(d.candidate, 0);
	assert_false(d.sample);
	measure(&next, &at, 0, LATENCY_NS / 4);
	assert_int_equal(next.state, AUTOTUNE_SETTLED);
	assert_false(atomic_load(&next.assumed));
	assert_false(autotune_make_profile(&next, &profile)); /* nothing new */
	assert_int_equal(autotune_decide(&next, &at, &launch).candidate, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_process_begins_settled),
		cmocka_unit_test(what_may_hang_is_refused),
		cmocka_unit_test(a_straight_kernel_can_be_cut),
		cmocka_unit_test(a_grid_that_fits_has_a_worker_for_each_block),
		cmocka_unit_test(what_cannot_be_launched_is_refused),
		cmocka_unit_test(more_workers_than_there_are_become_fewer),
		cmocka_unit_test(nothing_replaces_a_forced_form),
		cmocka_unit_test(a_wrong_profile_is_found_out),
		cmocka_unit_test(an_unknown_kernel_begins_settled),
		cmocka_unit_test(a_known_kernel_has_few_continuations),
		cmocka_unit_test(an_unknown_kernel_of_another_time_is_tuned),
		cmocka_unit_test(a_short_kernel_begins_natively),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
