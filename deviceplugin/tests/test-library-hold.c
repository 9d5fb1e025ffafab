/* Leases on the files that containers mount, while the plugin holds them. */
#include "library-hold.h"

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
#include <sys/wait.h>
#include <unistd.h>

#include "weir/base.h"

static const char *const files[] = {
	"1.0",
	"1.1",
	"1.0/libweir.so",
	"1.0/libweir-nvml.so",
	"1.0/ld.so.preload",
	"1.1/libweir.so",
	"1.1/libweir-nvml.so",
	"1.1/ld.so.preload",
};
#define FOLDERS 2

static char root[] = "/tmp/weir-test-XXXXXX";
static char paths[countof(files)][64];

static int set_up(void **state)
{
	(void)state;
	signal(SIGIO, SIG_IGN); /* tells a lease's holder that somebody waits */
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < countof(files); i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", root, files[i]);
		if (i < FOLDERS)
			mkdir(paths[i], 0755);
		else
			close(open(paths[i], O_CREAT | O_WRONLY, 0444));
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = countof(files); i-- > 0;)
		remove(paths[i]);
	return rmdir(root);
}

/* What a container's root does: opens the file read-only and takes a write lease. 0 or the errno.
 */
static int take_lease(const char *path, int *fd)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*fd >= 0);
	return fcntl(*fd, F_SETLEASE, F_WRLCK) == 0 ? 0 : errno;
}

/* In a child, whose descriptors end with it: a plugin of version 1.1. */
static void in_plugin(void (*body)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct config config;
		alarm(10); /* instead of waiting for 45 s */
		if (config_init(&config) < 0)
			_exit(1);
		free(config.preload_path);
		free(config.library_path);
		free(config.nvml_path);
		config.library_path = strdup(paths[5]);
		config.nvml_path = strdup(paths[6]);
		config.preload_path = strdup(paths[7]);
		library_hold(&config);
		config_deinit(&config);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void all_refused(void)
{
	for (size_t i = FOLDERS; i < countof(files); i++) {
		int fd;
		if (take_lease(paths[i], &fd) != EAGAIN)
			_exit(2);
	}
}

static void test_lease_is_refused(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(take_lease(paths[7], &fd), 0); /* without the plugin */
	close(fd);
	in_plugin(all_refused);
}

static void nothing(void)
{
}

static int leased = -1;

/* The holder gives its lease up and wants it again. It cannot have it once the plugin's thread
 * waits. */
static void not_renewed(void)
{
	int tries = 0;

	while (fcntl(leased, F_SETLEASE, F_UNLCK) == 0 && fcntl(leased, F_SETLEASE, F_WRLCK) == 0) {
		if (++tries == 500)
			_exit(3);
		usleep(10000);
	}
	for (int i = 0; i < 20; i++, usleep(1000))
		if (fcntl(leased, F_SETLEASE, F_WRLCK) == 0 || errno != EAGAIN)
			_exit(4);
}

static void test_start_with_a_lease(void **state)
{
	(void)state;
	assert_int_equal(take_lease(paths[7], &leased), 0);
	in_plugin(nothing); /* starts at once */
	fcntl(leased, F_SETLEASE, F_UNLCK);
	assert_int_equal(fcntl(leased, F_SETLEASE, F_WRLCK), 0);
	in_plugin(not_renewed);
	close(leased);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lease_is_refused),
		cmocka_unit_test(test_start_with_a_lease),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
