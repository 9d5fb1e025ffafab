/* What the device side of a loop does, access by access, in one block without a host: what a
 * scheduling point costs, when the kernel leaves, and that nothing waits for a host that is gone.
 */
#include "simcuda/tests/ptx-fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weir/loop-abi.h"

#define CALLBACKS 4u
#define RING      8u
#define THREADS   64u
#define POINTS    1000u
#define BUFFER    (16u << 20)
/* Far more than a kernel needs here: one that waits for ever fails, and does not hang. */
#define INSTRUCTIONS 50000000u
/* A look at device memory may come by time. That is rare. */
#define RARE (POINTS / 10)

/* The memory that a loop has, and how often the kernel touched each part. */
enum part { DEVICE, BLOCK, HOST, OUT, PARTS };

struct host {
	struct weir_loop_request requests[CALLBACKS];
	uint64_t doorbells[RING], values[CALLBACKS], demand;
	_Alignas(16) uint64_t answers[RING];
	uint8_t data[CALLBACKS][WEIR_LOOP_INLINE];
	struct weir_loop_report report;
	uint32_t hold;
};

static struct {
	struct ptx_module *module;
	_Alignas(512) struct weir_loop_device device;
	struct weir_loop_block block;
	struct host host;
	uint64_t *out;
	struct { /* of kernels.cu */
		struct weir_loop_args args;
		uint64_t *out;
		const char *text;
		uint64_t n;
	} params;
	uint64_t touched[PARTS];
	uint32_t threads;
	/* When the launch loaded its last callback, and when it stored its first. */
	uint64_t loaded, stored;
	bool began; /* its callbacks can run */
} w;

/* %globaltimer of the interpreter. */
static uint64_t timer(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void note_time(uintptr_t address)
{
	uintptr_t callbacks = (uintptr_t)w.block.callbacks;

	w.began |= address == (uintptr_t)&w.device.began;
	if (address < callbacks || address >= callbacks + sizeof(w.block.callbacks))
		return;
	if (!w.began)
		w.loaded = timer();
	else if (!w.stored)
		w.stored = timer();
}

static bool count(uintptr_t address, size_t size)
{
	const struct {
		const void *begin;
		size_t size;
	} parts[PARTS] = {[DEVICE] = {&w.device, sizeof(w.device)},
			  [BLOCK] = {&w.block, sizeof(w.block)},
			  [HOST] = {&w.host, sizeof(w.host)},
			  [OUT] = {w.out, BUFFER}};

	note_time(address);
	for (size_t i = 0; i < PARTS; i++) {
		uintptr_t begin = (uintptr_t)parts[i].begin;
		if (address >= begin && address + size <= begin + parts[i].size) {
			w.touched[i]++;
			return true;
		}
	}
	return false;
}

/* A loop that has not run. It looks at device memory as seldom as can be, and polls at once. */
static int begin(void **state)
{
	(void)state;
	memset(&w.device, 0, sizeof(w.device));
	memset(&w.block, 0, sizeof(w.block));
	memset(&w.host, 0, sizeof(w.host));
	memset(w.out, 0, 64 * sizeof(uint64_t));
	w.params.args = (struct weir_loop_args){.device = &w.device,
						.blocks = &w.block,
						.requests = w.host.requests,
						.doorbells = w.host.doorbells,
						.answers = w.host.answers,
						.values = w.host.values,
						.data = w.host.data[0],
						.report = &w.host.report,
						.demand = &w.host.demand,
						.demand_mask = 2,
						.hold = &w.host.hold,
						.callbacks = CALLBACKS,
						.ring = RING,
						.poll_ns = 1,
						.words_ns = 1,
						.linger_ns = 1000,
						.check_cycles = UINT32_MAX};
	w.params.out = w.out;
	w.threads = THREADS;
	return 0;
}

/* One launch. The time that it ran is counted in instructions of the block's warps. */
static int launch(const char *kernel, uint64_t n, uint64_t instructions)
{
	struct ptx_launch launch = {.grid = {1, 1, 1},
				    .block = {w.threads, 1, 1},
				    .params = &w.params,
				    .sm_count = 1,
				    .max_instructions = instructions};
	struct ptx_error error = {0};

	w.params.n = n;
	w.params.args.serial++;
	memset(w.touched, 0, sizeof(w.touched));
	w.loaded = w.stored = 0;
	w.began = false;
	int r = ptx_run_block(ptx_module_kernel(w.module, kernel), &launch, 0, 0, NULL, &error,
			      NULL);
	if (r && r != -ETIME)
		fail_msg("%s: %d, line %d: %s", kernel, r, error.line, error.message);
	return r;
}

/* The kernel leaves, and reports. */
static void must_leave(const char *kernel, uint64_t n, uint32_t reason)
{
	assert_int_equal(launch(kernel, n, INSTRUCTIONS), 0);
	assert_int_equal(w.host.report.serial, w.params.args.serial);
	assert_int_equal(w.host.report.reason, reason);
	/* In order for the next launch. */
	assert_int_equal(w.device.close, 0);
	assert_int_equal(w.device.left, 0);
	assert_int_equal(w.device.idle, 0);
	assert_int_equal(w.device.next_poll, 0);
}

static uint64_t touched(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PARTS; i++)
		sum += w.touched[i];
	return sum;
}

static const char *const points[] = {"points_post", "points_look"};

/* Two slots in shared memory do for tasks that post the next one. */
static void points_touch_shared_memory_only(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin(state);
		must_leave(points[i], 1, 0);
		uint64_t few = touched();
		begin(state);
		must_leave(points[i], POINTS + 1, 0);
		assert_in_range(touched() - few, 0, RARE);
	}
}

static void must_take(const char *kernel, uint32_t threads, uint64_t least, uint64_t most)
{
	for (int i = 0; i < 2; i++) {
		begin(NULL);
		w.threads = threads;
		assert_int_equal(launch(kernel, POINTS, POINTS * (i ? most : least)),
				 i ? 0 : -ETIME);
	}
}

/* Of both warps: 180 and 30 with nvcc 13.0. */
static void points_take_few_instructions(void **state)
{
	(void)state;
	must_take("points_post", THREADS, 10, 200);
	must_take("points_look", THREADS, 10, 40);
}

/* Of 16 warps: 932. The first one alone knows the callbacks; each of the others takes 54. */
static void other_warps_do_less(void **state)
{
	(void)state;
	must_take("points_post", 512, 10, 1000);
}

/* A loop that has come back runs in callbacks. */
static void points_of_callbacks_cost_no_more(void **state)
{
	begin(state);
	w.host.hold = 1;
	must_leave("points_look", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	w.host.hold = 0;
	assert_int_equal(launch("points_look", POINTS, POINTS * 40), 0);
	assert_int_equal(w.host.report.ended, 1);
}

/* A poll takes microseconds, and a loop that takes turns with others comes back hundreds of times a
 * second. */
static void a_kernel_that_comes_back_does_not_poll_first(void **state)
{
	begin(state);
	w.host.hold = 1;
	must_leave("points_look", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	uint32_t polls = w.host.report.polls;
	w.host.hold = 0;
	must_leave("points_look", POINTS, 0);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.host.report.polls, polls);
}

static char *read_kernels(void)
{
	const size_t room = 8 << 20;
	FILE *file = fopen(LOOP_KERNELS, "r");
	char *text = malloc(room);

	assert_non_null(file);
	assert_non_null(text);
	size_t n = fread(text, 1, room - 1, file);
	fclose(file);
	assert_in_range(n, 1, room - 2);
	text[n] = '\0';
	return text;
}

static bool has(const char *from, const char *to, const char *text)
{
	const char *found = strstr(from, text);

	return found && found < to;
}

/* On a GPU an access to memory of an unknown kind takes longer. With such accesses to the loop a
 * scheduling point of a callback took 5 % longer than one of start(). */
static void callbacks_know_where_the_loop_is(void **state)
{
	char *text = read_kernels();
	unsigned n = 0;

	(void)state;
	for (const char *at = text; (at = strstr(at, "\n.func ")); at++) {
		const char *body = strstr(at, "\n{"), *end = strstr(at, "\n}");
		const char *declared = strstr(at, ";");
		if (!body || !end || declared < body || !has(body, end, "%clock64"))
			continue;
		n++;
		assert_true(has(body, end, "cvta.to.local"));
	}
	assert_true(n >= 3);
	free(text);
}

/* Each of POINTS points looks. A look reads a word of the loop and one of the block. */
static void a_look_reads_two_words(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin(state);
		w.params.args.check_cycles = 0;
		w.params.args.poll_ns = w.params.args.words_ns = 2000000000;
		must_leave(points[i], POINTS, 0);
		/* A few: to begin, to poll at first, and to leave. */
		assert_in_range(w.touched[DEVICE], POINTS, POINTS + RARE);
		assert_in_range(w.touched[BLOCK], POINTS, POINTS + RARE);
		assert_in_range(w.touched[HOST], 3, RARE);
	}
}

/* Each of POINTS points polls. Demand, hold and answers are one read each. */
static void a_poll_reads_three_words_of_the_host(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	must_leave("points_look", POINTS, 0);
	assert_in_range(w.touched[HOST], 3 * POINTS - RARE, 3 * POINTS + RARE);
	assert_in_range(w.host.report.polls, POINTS - RARE, POINTS + RARE);
	assert_in_range(w.touched[DEVICE], POINTS, 8 * POINTS + RARE);
}

/* The block that polls stands still meanwhile, so busy ones poll only as often as they must. */
static void busy_blocks_poll_for_demand_alone(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.params.args.words_ns = 2000000000;
	must_leave("points_look", POINTS, 0);
	assert_in_range(w.host.report.polls, 0, RARE);
}

/* Demand and hold: the kernel leaves at its next look, and goes on later. */
static void a_busy_kernel_leaves_when_it_must(void **state)
{
	uint64_t n = POINTS;

	for (size_t i = 0; i < 2; i++) {
		begin(state);
		w.params.args.check_cycles = 0;
		w.host.demand = i ? 0 : 2;
		w.host.hold = i ? 1 : 0;
		must_leave("spinner", n, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.host.report.ended, 0);
		assert_in_range(w.out[0], 1, 2);
		w.host.demand = 1; /* of a level that is none of the kernel's business */
		w.host.hold = 0;
		must_leave("spinner", n, 0);
		assert_int_equal(w.host.report.ended, 1);
		assert_int_equal(w.out[0], n);
	}
}

/* A block that leaves in the middle of its chunk comes back to the rest of it. */
static void numbers_drawn_are_kept(void **state)
{
	static const char *const kernels[] = {"shared_out", "shared_out_by_four",
					      "shared_out_alone"};
	static const uint32_t chunks[] = {1, 4, 4};

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		uint64_t n = 22;
		begin(state);
		w.params.args.check_cycles = 0;
		w.host.hold = 1;
		must_leave(kernels[i], n, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.out[0], 1);
		assert_int_equal(w.out[3], 0);
		assert_int_equal(w.host.report.ended, 0);
		w.host.hold = 0;
		must_leave(kernels[i], n, 0);
		assert_int_equal(w.host.report.ended, 1);
		assert_int_equal(w.out[0], n);
		assert_int_equal(w.out[1], (n - 1) * n / 2);
		assert_int_equal(w.out[2], (n / chunks[i] + 1) * chunks[i]);
		assert_int_equal(w.out[3], i < 2);
	}
}

/* A block draws before its body. If it leaves behind the body, it comes back to the number that is
 * drawn and not done. */
static void a_number_drawn_ahead_is_next(void **state)
{
	const uint64_t n = 20;

	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (uint64_t done = 1; done <= n; done++) {
		bool ends = done == n;
		must_leave("drawn_ahead", n, WEIR_LOOP_EVICTED | (ends ? 0 : WEIR_LOOP_READY));
		assert_int_equal(w.host.report.ended, ends);
		assert_int_equal(w.out[0], done);
		assert_int_equal(w.out[1], done + 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(w.out[16 + 2 * i], i);
		assert_int_equal(w.out[17 + 2 * i], i + 2);
	}
}

/* Warps stop at different places, and each goes on from its own. */
static void a_body_that_stopped_goes_on(void **state)
{
	const uint64_t bodies = 5, steps = 10 * (THREADS / 32);
	uint64_t before = 0;

	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (int i = 0; i < 3; i++) {
		must_leave("long_bodies", bodies, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.host.report.ended, 0);
		assert_in_range(w.out[0], before + 1, before + steps);
		before = w.out[0];
	}
	w.host.hold = 0;
	must_leave("long_bodies", bodies, 0);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.out[0], bodies * steps);
}

/* Accesses between the moment when a kernel finds that it must leave and its report. */
static void leaving_is_short(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	must_leave("spinner", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	/* A warp copies two slots; then bits, counters, the report. */
	assert_in_range(w.touched[BLOCK], 1, 24);
	assert_in_range(w.touched[DEVICE], 1, 32);
	assert_in_range(w.touched[HOST], 1, 12);
}

/* Neither loading the state nor storing it is time that callbacks could use. */
static void the_time_of_a_launch_is_that_of_its_callbacks(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (int i = 0; i < 3; i++) {
		must_leave("spinner", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.loaded != 0, i > 0);
		assert_true(w.device.began >= w.loaded);
		assert_true(w.stored && w.device.began + w.host.report.ran <= w.stored);
		assert_true(w.host.report.ran > 0);
		assert_int_equal(w.host.report.begun, w.params.args.serial);
	}
}

/* Nobody takes requests, nobody answers. */
static void a_kernel_whose_host_is_gone_leaves(void **state)
{
	static const char *const kernels[] = {"timers", "round_trips"};

	for (size_t i = 0; i < 2; i++) {
		begin(state);
		must_leave(kernels[i], 1, WEIR_LOOP_BLOCKED);
		assert_int_equal(w.host.report.ended, 0);
		assert_true(w.host.doorbells[0] != 0);
		/* Again, as if it had been launched without an answer. */
		must_leave(kernels[i], 1, WEIR_LOOP_BLOCKED);
	}
}

/* Places of the ring that the host has not written in this lap. */
static void answers_of_another_lap_are_none(void **state)
{
	begin(state);
	for (uint32_t i = 0; i < RING; i++)
		w.host.answers[i] = WEIR_LOOP_ANSWER(0, 2, 0);
	must_leave("round_trips", 1, WEIR_LOOP_BLOCKED);
	assert_int_equal(w.host.report.answers, 0);
}

/* Answers that came while the kernel was away: both of one access, and one of the next. */
static void answers_are_taken_together(void **state)
{
	uint32_t n = 3; /* timers */

	begin(state);
	must_leave("timers", 0, WEIR_LOOP_BLOCKED);
	for (uint32_t i = 0; i < n; i++)
		w.host.answers[i] = WEIR_LOOP_ANSWER(i, 1, 0);
	must_leave("timers", 0, 0);
	assert_int_equal(w.host.report.answers, n);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.out[0], 2 | 4 | 8);
}

/* Two slots are in shared memory, the others in device memory. */
static void full_slots_are_an_error(void **state)
{
	begin(state);
	must_leave("spill", CALLBACKS + 3, 0);
	assert_int_equal(w.out[0], CALLBACKS);
	assert_int_equal(w.out[1], 3);
}

/* There is no slot for what would go on later: the callback is not cut, and the kernel leaves
 * behind it. */
static void a_block_without_room_does_not_yield(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	must_leave("crowded", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	assert_int_equal(w.out[0], POINTS);
	assert_int_equal(w.out[1], 0);
	w.host.hold = 0;
	must_leave("crowded", POINTS, 0);
	assert_int_equal(w.out[0], POINTS);
	assert_int_equal(w.out[1], CALLBACKS);
	assert_int_equal(w.out[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_touch_shared_memory_only),
		cmocka_unit_test(points_take_few_instructions),
		cmocka_unit_test(other_warps_do_less),
		cmocka_unit_test(points_of_callbacks_cost_no_more),
		cmocka_unit_test(a_kernel_that_comes_back_does_not_poll_first),
		cmocka_unit_test(callbacks_know_where_the_loop_is),
		cmocka_unit_test(a_look_reads_two_words),
		cmocka_unit_test(a_poll_reads_three_words_of_the_host),
		cmocka_unit_test(busy_blocks_poll_for_demand_alone),
		cmocka_unit_test(a_busy_kernel_leaves_when_it_must),
		cmocka_unit_test(numbers_drawn_are_kept),
		cmocka_unit_test(a_number_drawn_ahead_is_next),
		cmocka_unit_test(a_body_that_stopped_goes_on),
		cmocka_unit_test(leaving_is_short),
		cmocka_unit_test(the_time_of_a_launch_is_that_of_its_callbacks),
		cmocka_unit_test(a_kernel_whose_host_is_gone_leaves),
		cmocka_unit_test(answers_of_another_lap_are_none),
		cmocka_unit_test(answers_are_taken_together),
		cmocka_unit_test(full_slots_are_an_error),
		cmocka_unit_test(a_block_without_room_does_not_yield),
	};

	w.module = fixture_load_file(LOOP_KERNELS);
	w.out = calloc(1, BUFFER);
	ptx_set_address_check(count);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	ptx_module_free(w.module);
	free(w.out);
	return failed;
}
