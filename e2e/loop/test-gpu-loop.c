/* Loops on the simulated GPU: tasks and files. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 2u /* the simulated GPU's SMs */

static const struct weir_loop_options usual = {.threads = 64};

static void tasks_run_in_every_block(void **state)
{
	(void)state;
	assert_int_equal(fixture_run("tasks", &usual, 100), 0);
	assert_int_equal(fx.seen[0], 101 * BLOCKS);
	assert_int_equal(fx.stats.launches, 1);
	assert_int_equal(fx.code, 0);
}

static void callbacks_spill_to_device_memory(void **state)
{
	(void)state;
	struct weir_loop_options options = {.threads = 64, .blocks = 1, .callbacks = 6};
	assert_int_equal(fixture_run("spill", &options, 9), 0);
	assert_int_equal(fx.seen[0], 6);
	assert_int_equal(fx.seen[1], 3);
	/* The slots in order. */
	assert_int_equal(fx.seen[2], 234561);
}

static void more_blocks_than_fit_are_refused(void **state)
{
	struct weir_loop *loop;
	CUfunction function;

	(void)state;
	assert_int_equal(cuModuleGetFunction(&function, fx.module, "tasks"), CUDA_SUCCESS);
	assert_int_equal(
		weir_loop_new(&loop, function, &(struct weir_loop_options){.blocks = BLOCKS + 1}),
		-EINVAL);
	assert_string_not_equal(weir_loop_error(NULL), "");
}

/* A program's division of shared memory and cache stays, unless the blocks need more. */
static void the_cache_is_divided_as_the_program_says(void **state)
{
	const CUfunction_attribute which = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
	static const int set[] = {-1, 0, 70};
	CUfunction function;
	int value;

	(void)state;
	assert_int_equal(cuModuleGetFunction(&function, fx.module, "tasks"), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		assert_int_equal(cuFuncSetAttribute(function, which, set[i]), CUDA_SUCCESS);
		assert_int_equal(fixture_run("tasks", &usual, 1), 0);
		assert_int_equal(cuFuncGetAttribute(&value, which, function), CUDA_SUCCESS);
		if (set[i])
			assert_int_equal(value, set[i]);
		else
			assert_in_range(value, 1, 10);
	}
	assert_int_equal(cuFuncSetAttribute(function, which, -1), CUDA_SUCCESS);
}

static void make_file(const char *path, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	FILE *file = fopen(path, "w");

	assert_non_null(bytes);
	assert_non_null(file);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	free(bytes);
}

static void assert_same(const char *a, const char *b)
{
	char command[512];

	snprintf(command, sizeof(command), "cmp %s %s", a, b);
	assert_int_equal(system(command), 0);
}

static void copy_files(const struct weir_loop_options *options)
{
	static const struct {
		size_t size, part;
	} cases[] = {{0, 64},
		     {1, 64},
		     {5000, 4096},
		     {10000, 1000},
		     {100000, 8192},
		     {3 << 20, 5 << 20},
		     {(3 << 20) + 17, 1 << 21}};
	char to[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(to, sizeof(to), "%s", fixture_path("to"));
		make_file(fixture_path("from"), cases[i].size);
		fixture_text(0, fixture_path("from"));
		fixture_text(256, to);
		assert_int_equal(fixture_run("copy_file", options, cases[i].part), 0);
		assert_int_equal(fx.seen[0], cases[i].size);
		assert_int_equal(fx.seen[1], cases[i].size);
		assert_int_equal(fx.seen[2], 0);
		assert_same(fixture_path("from"), to);
	}
}

static void files_are_copied(void **state)
{
	(void)state;
	copy_files(&usual);
	assert_true(fx.stats.uring || getenv("WEIR_LOOP_NO_URING"));
}

static void files_are_copied_without_uring(void **state)
{
	struct weir_loop_options options = {.threads = 64, .no_uring = true};

	(void)state;
	copy_files(&options);
	assert_false(fx.stats.uring);
}

/* A transfer waits for the only buffer while its last piece ends. */
static void one_buffer_is_enough(void **state)
{
	(void)state;
	copy_files(&(struct weir_loop_options){.threads = 64, .staging = 1});
	copy_files(&(struct weir_loop_options){.threads = 64, .staging = 1, .no_uring = true});
}

/* Around the page cache, where the folder's file system can do that: through buffers, and by what
 * stands in for libcufile. That refuses a part, and short reads are done again. */
static void direct_files(const char *cufile, bool wants)
{
	static const size_t sizes[] = {100, 4097, 1 << 20, (6 << 20) + 4096, (6 << 20) + 77};
	struct weir_loop_options options = {.threads = 64, .cufile = cufile};
	uint64_t gds = 0;
	char to[256];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(to, sizeof(to), "%s", fixture_path("to"));
		make_file(fixture_path("from"), sizes[i]);
		fixture_text(0, fixture_path("from"));
		fixture_text(256, to);
		assert_int_equal(fixture_run("copy_direct", &options, 2 << 20), 0);
		assert_int_equal(fx.seen[0], sizes[i]);
		assert_same(fixture_path("from"), to);
		gds += fx.stats.gds;
	}
	int fd = open(fixture_path("from"), O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		assert_int_equal(gds > 0, wants);
	}
}

static void direct_files_are_copied(void **state)
{
	(void)state;
	direct_files("", false);
	direct_files("libnothing.so", false);
	direct_files(CUFILE, true);
}

static void errors_are_values(void **state)
{
	(void)state;
	fixture_text(0, fixture_path("missing"));
	fixture_text(256, fixture_path("to"));
	assert_int_equal(fixture_run("copy_file", &usual, 64), 0);
	assert_int_equal((int64_t)fx.seen[0], -ENOENT);
}

static void each_block_runs_all_once(void **state)
{
	(void)state;
	static const char *const kernels[] = {"shared_out", "shared_out_by_four",
					      "shared_out_alone"};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		for (uint64_t n = 47; n <= 50; n++) {
			assert_int_equal(fixture_run(kernels[i], &usual, n), 0);
			assert_int_equal(fx.seen[0], n);
			assert_int_equal(fx.seen[1], (n - 1) * n / 2);
			assert_int_equal(fx.seen[3], i < 2 ? BLOCKS : 0);
		}
	}
}

static void yielding_changes_no_result(void **state)
{
	(void)state;
	assert_int_equal(fixture_run("sums", &usual, 1000), 0);
	assert_int_equal(fx.seen[0], 999u * 1000 / 2 * 64 * BLOCKS);
}

/* All blocks together read host memory no more often than they may. */
static void host_memory_is_polled_seldom(void **state)
{
	const uint32_t poll_ns = 200000;
	struct weir_loop_options options = {
		.threads = 64, .poll_ns = poll_ns, .linger_us = 1000000};
	struct timespec began, ended;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &began);
	assert_int_equal(fixture_run("timers", &options, 10000000), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	uint64_t ns = (uint64_t)(ended.tv_sec - began.tv_sec) * 1000000000u +
		      (uint64_t)ended.tv_nsec - (uint64_t)began.tv_nsec;
	assert_true(fx.stats.polls > 0);
	assert_true(fx.stats.polls <= ns / poll_ns + fx.stats.launches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_run_in_every_block),
		cmocka_unit_test(callbacks_spill_to_device_memory),
		cmocka_unit_test(more_blocks_than_fit_are_refused),
		cmocka_unit_test(the_cache_is_divided_as_the_program_says),
		cmocka_unit_test(files_are_copied),
		cmocka_unit_test(files_are_copied_without_uring),
		cmocka_unit_test(one_buffer_is_enough),
		cmocka_unit_test(direct_files_are_copied),
		cmocka_unit_test(errors_are_values),
		cmocka_unit_test(each_block_runs_all_once),
		cmocka_unit_test(yielding_changes_no_result),
		cmocka_unit_test(host_memory_is_polled_seldom),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
