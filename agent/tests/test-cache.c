/* The cache: bounded, drops the least recently used object, survives a restart. */
#include "compile/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/log.h"

#define FILE_SIZE 5000u /* two blocks */

static char folder[] = "/tmp/weir-cache-XXXXXX";
static struct cache cache;

static struct digest digest(int n)
{
	struct digest d = {.bytes = {(uint8_t)n}};

	return d;
}

static void keep(int n)
{
	static const char bytes[FILE_SIZE];
	struct digest key = digest(n), content = digest(100 + n);
	struct cache_draft draft;

	assert_int_equal(cache_draft(&cache, FILE_SIZE, &draft), 0);
	assert_int_equal(write(draft.fd, bytes, FILE_SIZE), FILE_SIZE);
	assert_int_equal(cache_keep(&cache, &draft, &key, &content), 0);
	/* Times of files differ only after a tick of the clock. */
	usleep(20000);
}

static struct cache_entry *find(int n)
{
	struct digest key = digest(n);

	return cache_find(&cache, &key);
}

static bool holds(int n)
{
	struct digest key = digest(n);
	struct cache_entry *entry;

	HASH_FIND(hh, cache.all, &key, sizeof(key), entry);
	return entry;
}

static unsigned count_files(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	for (struct dirent *file; (file = readdir(dir));)
		n += file->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void restart(uint64_t max)
{
	cache_deinit(&cache);
	assert_int_equal(cache_init(&cache, folder, max), 0);
}

static int set_up(void **state)
{
	(void)state;
	return cache_init(&cache, folder, 4 * 8192);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	cache_deinit(&cache);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void test_keeps(void **state)
{
	struct stat info;

	(void)state;
	assert_null(find(1));
	keep(1);
	struct cache_entry *entry = find(1);
	assert_non_null(entry);
	int fd = cache_open(&cache, entry);
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_size, FILE_SIZE);
	assert_int_equal(write(fd, "x", 1), -1);
	close(fd);
	assert_int_equal(cache.bytes, 8192);
	cache_drop(&cache, entry);
	assert_null(find(1));
	assert_int_equal(cache.bytes, 0);
	assert_int_equal(count_files(), 0);
}

static void test_least_used_goes_first(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++)
		keep(n);
	assert_int_equal(cache.evicted, 0);
	find(1);
	keep(5);
	keep(6);
	assert_true(holds(1) && !holds(2) && !holds(3) && holds(4) && holds(5) && holds(6));
	assert_int_equal(cache.bytes, 4 * 8192);
	assert_int_equal(cache.evicted, 2);
	assert_int_equal(count_files(), 4);
}

static void test_restart_keeps_the_order(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++)
		keep(n);
	find(1);
	restart(2 * 8192);
	assert_true(holds(1) && !holds(2) && !holds(3) && holds(4));
	assert_int_equal(count_files(), 2);
}

/* Foreign files are removed; a folder stays, and is no entry. */
static void test_junk(void **state)
{
	char path[256];

	(void)state;
	keep(1);
	snprintf(path, sizeof(path), "%s/new-7", folder);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/%064d-%064d", folder, 0, 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/%064d-%063dg", folder, 0, 0);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(path, sizeof(path), "%s/%064d-%064d", folder, 1, 0);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%064d-%064d", folder, 2, 0);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	restart(4 * 8192);
	assert_int_equal(HASH_COUNT(cache.all), 1);
	assert_int_equal(count_files(), 2);
	assert_true(holds(1));
}

static void test_too_large(void **state)
{
	struct cache_draft draft;

	(void)state;
	keep(1);
	assert_int_equal(cache_draft(&cache, 4 * 8192 + 1, &draft), -EFBIG);
	assert_true(holds(1));
}

/* The later object of a key is kept. */
static void test_replaces(void **state)
{
	(void)state;
	keep(1);
	keep(1);
	assert_int_equal(HASH_COUNT(cache.all), 1);
	assert_int_equal(count_files(), 1);
	assert_int_equal(cache.bytes, 8192);
}

static void test_discard(void **state)
{
	struct cache_draft draft;

	(void)state;
	assert_int_equal(cache_draft(&cache, 1, &draft), 0);
	assert_int_equal(count_files(), 1);
	cache_discard(&cache, &draft);
	cache_discard(&cache, &draft);
	assert_int_equal(count_files(), 0);
}

/* Somebody cut or removed a file. */
static void test_changed_file(void **state)
{
	char path[256], key[DIGEST_TEXT], content[DIGEST_TEXT];
	struct digest k = digest(1), c = digest(101);

	(void)state;
	keep(1);
	digest_format(&k, key);
	digest_format(&c, content);
	snprintf(path, sizeof(path), "%s/%s-%s", folder, key, content);
	assert_int_equal(truncate(path, 10), 0);
	assert_int_equal(cache_open(&cache, find(1)), -EIO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cache_open(&cache, find(1)), -EIO);
}

static int make_name(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	return mkdtemp(folder) ? 0 : -1;
}

#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(test_keeps),
		CACHE_TEST(test_least_used_goes_first),
		CACHE_TEST(test_restart_keeps_the_order),
		CACHE_TEST(test_junk),
		CACHE_TEST(test_too_large),
		CACHE_TEST(test_replaces),
		CACHE_TEST(test_discard),
		CACHE_TEST(test_changed_file),
	};

	return cmocka_run_group_tests(tests, make_name, NULL);
}
