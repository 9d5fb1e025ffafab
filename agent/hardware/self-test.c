#include "hardware/self-test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/base.h"
#include "weir/file.h"
#include "weir/log.h"

#define PROGRAM "weir-selftest"
#define SECONDS 30

struct name {
	char text[96];
};

static struct name file_of(const struct self_test *test, const char *suffix)
{
	struct name name;

	snprintf(name.text, sizeof(name.text), "%s/hardware%s", test->gpu, suffix);
	return name;
}

/* The first line of a file; empty: there is none. */
static void first_line(const char *path, char *line, size_t size)
{
	file_read(AT_FDCWD, path, line, size);
	line[strcspn(line, "\n")] = '\0';
}

/* Is there an MPS daemon that the driver would use? Its clients have no channel groups. */
static bool has_mps(void)
{
	const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/control", pipes ? pipes : "/tmp/nvidia-mps");

	return n < (int)sizeof(path) && access(path, F_OK) == 0;
}

static void find_key(struct self_test *test)
{
	char boot[40], driver[112];

	first_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	first_line("/proc/driver/nvidia/version", driver, sizeof(driver));
	snprintf(test->key, sizeof(test->key), "%s %s%s", boot, driver, has_mps() ? " MPS" : "");
}

/* The file has the key, and a line with the reason, which is empty if it works. */
static bool recall(struct self_test *test)
{
	char text[sizeof(test->key) + SELF_TEST_REASON + 2];
	size_t n = strlen(test->key);

	if (file_read(test->folder->dir, file_of(test, "").text, text, sizeof(text)) < 0 ||
	    strncmp(text, test->key, n) != 0 || text[n] != '\n')
		return false;
	char *reason = text + n + 1, *end = strchr(reason, '\n');
	if (!end)
		return false;
	*end = '\0';
	test->state = *reason ? SELF_TEST_FAILED : SELF_TEST_WORKS;
	snprintf(test->reason, sizeof(test->reason), "%s", reason);
	return true;
}

/* A result that cannot be kept is found out again. */
static void keep(const struct self_test *test)
{
	struct name fresh = file_of(test, ".new"), name = file_of(test, "");
	int dir = test->folder->dir;

	unlinkat(dir, fresh.text, 0);
	cleanup(closep) int fd = file_open(dir, fresh.text, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0 || dprintf(fd, "%s\n%s\n", test->key, test->reason) < 0 ||
	    renameat(dir, fresh.text, dir, name.text) < 0)
		log_warning("%s: the result of the self-test is not kept: %s", test->gpu,
			    strerror(fd < 0 ? -fd : errno));
}

static void tell(const struct self_test *test)
{
	if (test->state == SELF_TEST_WORKS)
		log_info("%s: hardware preemption works", test->gpu);
	else
		log_info("%s: no hardware preemption: %s", test->gpu, test->reason);
}

static void ended(struct program_run *run, bool success, const char *output)
{
	struct self_test *test = container_of(run, struct self_test, run);
	int length = (int)strcspn(output, "\n");

	test->state = success ? SELF_TEST_WORKS : SELF_TEST_FAILED;
	test->reason[0] = '\0';
	if (!success)
		snprintf(test->reason, sizeof(test->reason), "%.*s", length,
			 length ? output : "the self-test did not end");
	keep(test);
	tell(test);
	test->done(test);
}

/* Ours, but for the folder of the driver's libraries. For free(). NULL: no memory. */
static char **environment_with(char *search)
{
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	char **environment = calloc(n + 2, sizeof(*environment));
	if (!environment)
		return NULL;
	environment[kept++] = search;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "LD_LIBRARY_PATH=", 16) != 0)
			environment[kept++] = environ[i];
	return environment;
}

static int start(struct self_test *test, struct loop *loop, const char *libraries)
{
	char path[PATH_MAX], search[PATH_MAX + 32];
	char *argv[] = {path, test->gpu, NULL};

	if (!program_beside(PROGRAM, path, sizeof(path)))
		return -ENAMETOOLONG;
	if (!libraries)
		return program_run_start(&test->run, loop, argv, environ, SECONDS, ended);
	snprintf(search, sizeof(search), "LD_LIBRARY_PATH=%s", libraries);
	char **environment = environment_with(search);
	int r = environment ? program_run_start(&test->run, loop, argv, environment, SECONDS, ended)
			    : -ENOMEM;
	free(environment);
	return r;
}

void self_test_begin(struct self_test *test, struct loop *loop, const struct folder *folder,
		     const char *gpu, const char *libraries, void (*done)(struct self_test *test))
{
	if (test->state != SELF_TEST_OFF)
		return;
	*test = (struct self_test){.state = SELF_TEST_RUNS, .folder = folder, .done = done};
	snprintf(test->gpu, sizeof(test->gpu), "%s", gpu);
	snprintf(test->reason, sizeof(test->reason), "weir-selftest runs");
	find_key(test);
	if (recall(test)) {
		tell(test);
		return;
	}
	int r = start(test, loop, libraries);
	if (r < 0) {
		test->state = SELF_TEST_FAILED;
		snprintf(test->reason, sizeof(test->reason), PROGRAM ": %s", strerror(-r));
		tell(test);
	}
}

void self_test_off(struct self_test *test, const char *reason)
{
	program_run_stop(&test->run);
	*test = (struct self_test){.state = SELF_TEST_OFF};
	snprintf(test->reason, sizeof(test->reason), "%s", reason);
}
