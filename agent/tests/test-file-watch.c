/* A file that changes: written, replaced, or behind a ConfigMap's links. */
#include "weir/file-watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MAX 30000000000ull /* ns; enough on any machine */

static char folder[] = "/tmp/weir-watch-XXXXXX", path[64];
static struct loop loop;
static struct file_watch watch;
static unsigned seen;

static void changed(struct file_watch *w)
{
	assert_ptr_equal(w, &watch);
	seen++;
}

static void sh(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && { %s; }", folder, command);
	assert_int_equal(system(line), 0);
}

static void expect_change(void)
{
	unsigned before = seen;
	uint64_t end = loop_now() + WAIT_MAX;

	while (seen == before && loop_now() < end)
		loop_step(&loop, 100);
	assert_int_not_equal(seen, before);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weir-watch-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f.yaml", folder);
	assert_int_equal(loop_init(&loop), 0);
	return 0;
}

static int tear_down(void **state)
{
	char line[64];

	(void)state;
	file_watch_deinit(&watch);
	loop_deinit(&loop);
	snprintf(line, sizeof(line), "rm -rf %s", folder);
	return system(line);
}

static void begin(void)
{
	assert_int_equal(file_watch_init(&watch, &loop, path, changed), 0);
}

static void test_written(void **state)
{
	(void)state;
	sh("echo a > f.yaml");
	begin();
	sh("echo b > f.yaml");
	expect_change();
	sh("echo c > new && mv new f.yaml");
	expect_change();
}

/* Like the kubelet. */
static void test_config_map(void **state)
{
	(void)state;
	sh("mkdir ..1 && echo a > ..1/f.yaml && ln -s ..1 ..data && ln -s ..data/f.yaml f.yaml");
	begin();
	sh("mkdir ..2 && echo b > ..2/f.yaml && ln -s ..2 ..data_tmp && mv -T ..data_tmp ..data && "
	   "rm -r ..1");
	expect_change();
}

static void test_other_files_are_ignored(void **state)
{
	unsigned before = seen;

	(void)state;
	sh("echo a > f.yaml");
	begin();
	sh("echo b > g.yaml");
	for (int i = 0; i < 4; i++)
		loop_step(&loop, 100);
	assert_int_equal(seen, before);
}

static void test_folder_goes(void **state)
{
	(void)state;
	sh("echo a > f.yaml");
	begin();
	sh("rm -r $PWD && mkdir $PWD && cd $PWD && echo b > f.yaml");
	expect_change();
	sh("echo c > f.yaml");
	expect_change();
}

static unsigned long queue_max(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned long n = 0;

	if (file) {
		assert_int_equal(fscanf(file, "%lu", &n), 1);
		fclose(file);
	}
	return n;
}

/* The kernel's event queue overflows: anything may have changed. */
static void test_queue_overflow(void **state)
{
	unsigned long n = queue_max();
	char other[2][64];

	(void)state;
	if (n == 0 || n > 100000)
		skip();
	sh("echo a > f.yaml; echo a > g.yaml");
	begin();
	snprintf(other[0], sizeof(other[0]), "%s/g.yaml", folder);
	snprintf(other[1], sizeof(other[1]), "%s/h.yaml", folder);
	for (unsigned long i = 0; i <= n; i++)
		assert_int_equal(rename(other[i % 2], other[(i + 1) % 2]), 0);
	sh("echo b > f.yaml");
	expect_change();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_config_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_files_are_ignored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_folder_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_queue_overflow, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
