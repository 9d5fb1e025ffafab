/* weir-mps, which starts MPS daemons and outlives the agent. */
#include "mps-fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "weir/base.h"

/* weir-mps with this test's configuration. */
static pid_t start_supervisor_logging(const char *level)
{
	char supervisor[PATH_MAX], path[PATH_MAX];

	snprintf(supervisor, sizeof(supervisor), "%.*sweir-mps",
		 (int)(strrchr(program, '/') - program + 1), program);
	snprintf(path, sizeof(path), "%s/mps.yaml", folder);
	FILE *file = fopen(path, "we");
	fprintf(file, "logLevel: %s\nmps: {dir: %s, program: %s}\n", level, config.mps.dir,
		program);
	fclose(file);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(supervisor, supervisor, "--config", path, NULL);
		_exit(127);
	}
	return pid;
}

static pid_t start_supervisor(void)
{
	return start_supervisor_logging("error");
}

static void end_supervisor(pid_t supervisor)
{
	char path[PATH_MAX];
	int status;

	kill(supervisor, SIGTERM);
	assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
	assert_int_equal(status, 0);
	snprintf(path, sizeof(path), "%s/mps.yaml", folder);
	assert_int_equal(unlink(path), 0);
}

static pid_t parent_of(pid_t pid)
{
	char path[64];
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %*s %*c %d", &parent), 1);
	fclose(file);
	return parent;
}

static void the_supervisor_starts_them(void **state)
{
	pid_t supervisor = start_supervisor();

	(void)state;
	config.mps.supervisor = true;
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t first = daemon->pid;
	assert_int_equal(parent_of(first), supervisor);
	/* It is watched and restarted, too. */
	kill(first, SIGKILL);
	AWAIT(daemon->starts >= 2 && daemon->state == MPS_UP);
	assert_int_not_equal(daemon->pid, first);
	assert_int_equal(parent_of(daemon->pid), supervisor);
	mps_want(&mps, GPU_A, false);
	AWAIT(daemon->state == MPS_ENDED);
	end_supervisor(supervisor);
}

static void daemons_end_with_the_supervisor(void **state)
{
	pid_t supervisor = start_supervisor();

	(void)state;
	config.mps.supervisor = true;
	struct mps_daemon *daemon = have_daemon(GPU_A);
	pid_t pid = daemon->pid;
	end_supervisor(supervisor);
	assert_false(lives(pid));
	AWAIT(daemon->state == MPS_WAITING);
	assert_false(exists(GPU_A, "ready"));
	supervisor = start_supervisor();
	AWAIT(daemon->state == MPS_UP);
	assert_int_equal(parent_of(daemon->pid), supervisor);
	end_supervisor(supervisor);
}

/* A container runtime closes the reading end of the log when it is upgraded. */
static void the_supervisor_goes_on_without_a_log(void **state)
{
	int ends[2], log = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(log >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	pid_t supervisor = start_supervisor_logging("info");
	dup2(log, STDERR_FILENO);
	close(log);
	close(ends[0]);
	close(ends[1]);
	config.mps.supervisor = true;
	assert_int_equal(parent_of(have_daemon(GPU_A)->pid), supervisor);
	end_supervisor(supervisor);
}

static void the_supervisor_starts_old_programs_too(void **state)
{
	pid_t supervisor = start_supervisor();

	(void)state;
	make(GPU_A, "sim-single-user");
	config.mps.supervisor = true;
	have_daemon(GPU_A);
	assert_true(mps.single_user);
	end_supervisor(supervisor);
}

static bool has_variable(pid_t pid, const char *wanted)
{
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		if (strncmp(at, wanted, strlen(wanted)) == 0)
			return true;
	return false;
}

/* Of mps-per-level: in a folder of its own, with the library that hands its groups over. */
static void the_supervisor_starts_those_of_levels(void **state)
{
	static struct gpu gpu = {.id = GPU_A};
	pid_t supervisor = start_supervisor();

	(void)state;
	config.mps.supervisor = true;
	struct mps_daemon *one = mps_want_level(&mps, &gpu, 1);
	struct mps_daemon *three = mps_want_level(&mps, &gpu, 3);
	AWAIT(one->state == MPS_UP && three->state == MPS_UP);
	assert_int_equal(parent_of(one->pid), supervisor);
	assert_int_equal(parent_of(three->pid), supervisor);
	assert_true(exists(GPU_A, "level-1/client/control"));
	assert_true(exists(GPU_A, "level-3/agent.sock"));
	assert_true(has_variable(one->pid, "LD_PRELOAD=/"));
	assert_true(has_variable(one->pid, "WEIR_MPS_SOCKET=/"));
	/* A daemon for all levels is as before. */
	struct mps_daemon *all = have_daemon(GPU_A);
	assert_false(has_variable(all->pid, "LD_PRELOAD"));
	end_supervisor(supervisor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MPS_TEST(the_supervisor_starts_them),
		MPS_TEST(daemons_end_with_the_supervisor),
		MPS_TEST(the_supervisor_goes_on_without_a_log),
		MPS_TEST(the_supervisor_starts_old_programs_too),
		MPS_TEST(the_supervisor_starts_those_of_levels),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
