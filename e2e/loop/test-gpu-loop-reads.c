/* Reads of more than a slot holds: threads of the host copy them from the page cache. */
#include "fixture.h"

#include "tests/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PART  (2u << 20)
#define BYTES (4u * PART)

static const struct weir_loop_options usual = {.threads = 64};
static const struct weir_loop_options one = {.threads = 64, .readers = 1, .staging = 1};
static const struct weir_loop_options many = {.threads = 64, .readers = 7, .staging = 5};
static const struct weir_loop_options pool = {.threads = 64, .no_uring = true};
static const struct weir_loop_options *const all[] = {&usual, &one, &many, &pool};
#define ALL (sizeof(all) / sizeof(all[0]))

static uint8_t *bytes; /* of the file */

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 4096 * 7 + 1);
}

static int make_file(size_t size)
{
	int fd = open(fixture_path("from"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	fixture_text(0, fixture_path("from"));
	return fd;
}

/* The parts that the kernel read. */
static uint8_t *take(void)
{
	uint8_t *got = malloc(BYTES);

	assert_non_null(got);
	assert_int_equal(cuMemcpyDtoH(got, fx.out + 64 * sizeof(uint64_t), BYTES), CUDA_SUCCESS);
	return got;
}

static void read_all(const struct weir_loop_options *options, size_t size)
{
	assert_int_equal(cuMemsetD8(fx.out, 0, OUT_WORDS * sizeof(uint64_t)), CUDA_SUCCESS);
	assert_int_equal(fixture_run("read_parts", options, PART), 0);
	uint8_t *got = take();
	assert_int_equal(fx.seen[0], size);
	assert_int_equal(fx.seen[1], 0);
	assert_int_equal(fx.seen[2], 0);
	assert_memory_equal(got, bytes, size);
	free(got);
}

/* The kernel closes the file while all its reads are under way. */
static void parts_arrive_in_their_places(void **state)
{
	static const size_t sizes[] = {BYTES, BYTES - 1, PART + 4097, 4097, 100, 0};
	int before = open_descriptors();

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		close(make_file(sizes[i]));
		for (size_t j = 0; j < ALL; j++)
			read_all(all[j], sizes[i]);
	}
	assert_int_equal(open_descriptors(), before);
}

/* What a block copies itself, with more such reads than small buffers, and with the sizes around
 * the limits. The file is one part longer than what is read. */
static void short_parts_arrive(void **state)
{
	static const size_t parts[] = {4097, 32768, 32769, 65535, 65536, 65537};
	const struct weir_loop_options few = {.threads = 64, .staging = 1};

	(void)state;
	close(make_file(5 * 65537));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		assert_int_equal(cuMemsetD8(fx.out, 0, OUT_WORDS * sizeof(uint64_t)), CUDA_SUCCESS);
		assert_int_equal(fixture_run("read_parts", i & 1 ? &few : &usual, parts[i]), 0);
		uint8_t *got = take();
		assert_int_equal(fx.seen[0], 4 * parts[i]);
		assert_memory_equal(got, bytes, 4 * parts[i]);
		assert_int_equal(got[4 * parts[i]], 0);
		free(got);
		fixture_text(256, fixture_path("to"));
		assert_int_equal(fixture_run("copy_file", i & 1 ? &few : &usual, parts[i]), 0);
		assert_int_equal(fx.seen[0], 5 * 65537);
	}
}

/* Where the file system can tell, a reader leaves such reads to the engine. */
static void files_outside_the_page_cache_are_read(void **state)
{
	int fd = make_file(BYTES);

	(void)state;
	for (size_t j = 0; j < ALL; j++) {
		fsync(fd);
		/* Every second MiB. */
		for (off_t at = 0; at < BYTES; at += 2 << 20)
			posix_fadvise(fd, at, 1 << 20, POSIX_FADV_DONTNEED);
		read_all(all[j], BYTES);
	}
	close(fd);
}

static void what_is_no_regular_file_is_read(void **state)
{
	(void)state;
	fixture_text(0, "/dev/zero");
	for (size_t j = 0; j < ALL; j++) {
		assert_int_equal(fixture_run("read_parts", all[j], PART), 0);
		assert_int_equal(fx.seen[0], BYTES);
	}
	fixture_text(0, fx.folder);
	fixture_text(256, fixture_path("to"));
	for (size_t j = 0; j < ALL; j++) {
		assert_int_equal(fixture_run("copy_file", all[j], PART), 0);
		assert_int_equal((int64_t)fx.seen[0], -EISDIR);
	}
}

struct changes {
	int fd;
	_Atomic bool ends;
	unsigned n;
};

static void *change_size(void *data)
{
	struct changes *changes = data;

	while (!changes->ends) {
		assert_int_equal(ftruncate(changes->fd, 100000), 0);
		assert_int_equal(ftruncate(changes->fd, BYTES), 0);
		changes->n++;
	}
	return NULL;
}

/* A read is short then, or has zeros where the file was cut off. Nothing else. */
static void files_may_change_size_meanwhile(void **state)
{
	struct changes changes = {.fd = make_file(BYTES)};
	int before = open_descriptors();
	pthread_t thread;

	(void)state;
	assert_int_equal(cuMemsetD8(fx.out, 0, OUT_WORDS * sizeof(uint64_t)), CUDA_SUCCESS);
	pthread_create(&thread, NULL, change_size, &changes);
	for (size_t i = 0; i < 5 * ALL; i++) {
		assert_int_equal(fixture_run("read_parts", all[i % ALL], PART), 0);
		assert_int_equal(fx.seen[1], 0);
		assert_in_range(fx.seen[0], 100000, BYTES);
		uint8_t *got = take();
		assert_memory_equal(got, bytes, 100000);
		for (size_t k = 0; k < BYTES; k++)
			if (got[k] && got[k] != bytes[k])
				fail_msg("byte %zu is %u", k, got[k]);
		free(got);
	}
	changes.ends = true;
	pthread_join(thread, NULL);
	assert_true(changes.n > 0);
	assert_int_equal(open_descriptors(), before);
	close(changes.fd);
}

struct forks {
	_Atomic bool ends;
	_Atomic unsigned n;
};

static void *keep_forking(void *data)
{
	struct forks *forks = data;

	while (!forks->ends) {
		pid_t child = fork();
		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		forks->n++;
	}
	return NULL;
}

/* Children have no readers, and do not disturb those of the process. */
static void the_process_may_fork_meanwhile(void **state)
{
	struct forks forks = {0};
	pthread_t thread;

	(void)state;
	close(make_file(BYTES));
	pthread_create(&thread, NULL, keep_forking, &forks);
	for (size_t i = 0; i < 2 * ALL || !forks.n; i++)
		read_all(all[i % ALL], BYTES);
	forks.ends = true;
	pthread_join(thread, NULL);
}

static void readers_are_limited(void **state)
{
	const struct weir_loop_options options = {.threads = 64, .readers = 65};
	struct weir_loop *loop;
	CUfunction function;

	(void)state;
	assert_int_equal(cuModuleGetFunction(&function, fx.module, "read_parts"), CUDA_SUCCESS);
	assert_int_equal(weir_loop_new(&loop, function, &options), -EINVAL);
}

static int begin(void **state)
{
	bytes = malloc(BYTES);
	return bytes ? fixture_begin(state) : -1;
}

static int end(void **state)
{
	free(bytes);
	return fixture_end(state);
}

/* Of the kernel's table of this process's descriptors. */
static uint64_t places_of_descriptors(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long places = 0;

	assert_non_null(status);
	while (!places && fgets(line, sizeof(line), status))
		(void)sscanf(line, "FDSize: %lu", &places);
	fclose(status);
	assert_true(places > 0);
	return places;
}

/* Otherwise the kernel makes room while the loop runs, which then stands still. */
static void there_is_room_for_descriptors(void **state)
{
	uint64_t before = places_of_descriptors();
	const struct weir_loop_options options = {.threads = 64, .files = 3 * (uint32_t)before};
	struct rlimit limit, low;
	int opened = open_descriptors();

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){.rlim_cur = before + before / 2, .rlim_max = limit.rlim_max};
	if (limit.rlim_cur < 4 * before)
		skip();
	/* A limit is kept to. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	weir_loop_free(fixture_new("read_parts", &options));
	assert_in_range(places_of_descriptors(), low.rlim_cur, 2 * before);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	weir_loop_free(fixture_new("read_parts", &options));
	assert_true(places_of_descriptors() >= 3 * before);
	assert_int_equal(open_descriptors(), opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_room_for_descriptors),
		cmocka_unit_test(parts_arrive_in_their_places),
		cmocka_unit_test(short_parts_arrive),
		cmocka_unit_test(files_outside_the_page_cache_are_read),
		cmocka_unit_test(what_is_no_regular_file_is_read),
		cmocka_unit_test(files_may_change_size_meanwhile),
		cmocka_unit_test(the_process_may_fork_meanwhile),
		cmocka_unit_test(readers_are_limited),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
