/* Files that somebody else can reach. An open that waits is ended by alarm(), which ends the test.
 */
#include "weir/base.h"
#include "weir/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-test-XXXXXX";
static int dir;
static const char text[] = "words of a file";

static int set_up(void **state)
{
	(void)state;
	signal(SIGIO, SIG_IGN); /* tells a lease's holder that somebody waits */
	alarm(30);
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = file_open(dir, "file", O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	close(fd);
	return mkfifoat(dir, "fifo", 0600) | mkdirat(dir, "folder", 0700) |
	       symlinkat("file", dir, "link");
}

static int tear_down(void **state)
{
	(void)state;
	unlinkat(dir, "file", 0);
	unlinkat(dir, "fifo", 0);
	unlinkat(dir, "link", 0);
	unlinkat(dir, "folder", AT_REMOVEDIR);
	close(dir);
	return rmdir(folder);
}

static void test_a_created_file_is_its_owners(void **state)
{
	struct stat info;

	(void)state;
	assert_int_equal(fstatat(dir, "file", &info, 0), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(file_open(dir, "file", O_WRONLY | O_CREAT | O_EXCL), -EEXIST);
}

static void test_closes_on_exec(void **state)
{
	(void)state;
	int fd = file_open(dir, "file", O_RDONLY);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void test_other_kinds(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(file_open(dir, "fifo", O_RDONLY), -EINVAL);
	assert_int_equal(file_open(dir, "fifo", O_RDWR), -EINVAL);
	assert_int_equal(file_open(dir, "fifo", O_WRONLY), -ENXIO);
	assert_int_equal(file_open(dir, "folder", O_RDONLY), -EISDIR);
	assert_int_equal(file_open(dir, "missing", O_RDONLY), -ENOENT);
	assert_int_equal(file_open(AT_FDCWD, "/dev/zero", O_RDONLY), -EINVAL);
	assert_int_equal(file_open(dir, "link", O_RDONLY | O_NOFOLLOW), -ELOOP);
	assert_int_equal(file_read(dir, "fifo", out, sizeof(out)), -EINVAL);
	assert_int_equal(file_read(AT_FDCWD, "/dev/zero", out, sizeof(out)), -EINVAL);
}

static void test_leases(void **state)
{
	char out[8] = "before";

	(void)state;
	int fd = openat(dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_RDLCK), 0);
	assert_int_equal(file_read(dir, "file", out, sizeof(out)), sizeof(out) - 1);
	assert_int_equal(file_open(dir, "file", O_WRONLY | O_TRUNC), -EWOULDBLOCK);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	close(fd);

	fd = openat(dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(file_open(dir, "file", O_RDONLY), -EWOULDBLOCK);
	assert_int_equal(file_read(dir, "file", out, sizeof(out)), -EWOULDBLOCK);
	assert_string_equal(out, "");
	close(fd);
}

static void test_read_is_bounded(void **state)
{
	char out[sizeof(text)], small[6];

	(void)state;
	assert_int_equal(file_read(dir, "file", out, sizeof(out)), strlen(text));
	assert_string_equal(out, text);
	assert_int_equal(file_read(dir, "file", small, sizeof(small)), 5);
	assert_string_equal(small, "words");
}

static void test_load_is_bounded(void **state)
{
	size_t size = 1;

	(void)state;
	cleanup(closep) int fd = file_open(dir, "file", O_RDONLY);
	cleanup(freep) char *all = file_load(fd, strlen(text), &size);
	assert_non_null(all);
	assert_int_equal(size, strlen(text));
	assert_memory_equal(all, text, size);
	assert_null(file_load(fd, strlen(text) - 1, &size));
	assert_int_equal(size, 0);
	assert_null(file_load(-ENOENT, SIZE_MAX, &size));

	cleanup(closep) int other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_null(file_load(other, SIZE_MAX, &size));
}

/* Such files have no size. */
static void test_read_of_proc(void **state)
{
	char out[4096], pid[32];

	(void)state;
	snprintf(pid, sizeof(pid), "%d (", (int)getpid());
	assert_true(file_read(AT_FDCWD, "/proc/self/stat", out, sizeof(out)) > 0);
	assert_memory_equal(out, pid, strlen(pid));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_created_file_is_its_owners),
		cmocka_unit_test(test_closes_on_exec),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_read_is_bounded),
		cmocka_unit_test(test_load_is_bounded),
		cmocka_unit_test(test_read_of_proc),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
