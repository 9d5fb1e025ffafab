#include "common/program-run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/process.h"

#include "weir/base.h"
#include "weir/error.h"

/* Ends it if it still runs. */
static void discard(struct program_run *run)
{
	if (run->pid > 0) {
		kill(run->pid, SIGKILL);
		while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	loop_timer_deinit(&run->deadline);
	loop_io_deinit(&run->death);
	closep(&run->process);
	closep(&run->output);
	*run = (struct program_run){.process = -1, .output = -1};
}

static void finish(struct program_run *run, bool success)
{
	program_done_fn *done = run->done;
	char output[PROGRAM_OUTPUT_MAX];
	ssize_t n = pread(run->output, output, sizeof(output) - 1, 0);

	output[n > 0 ? n : 0] = '\0';
	discard(run);
	done(run, success, output);
}

static void ended(struct loop_io *io)
{
	struct program_run *run = container_of(io, struct program_run, death);
	int status = -1;

	while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
		;
	run->pid = 0;
	finish(run, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void time_is_up(struct loop_timer *timer)
{
	finish(container_of(timer, struct program_run, deadline), false);
}

/* Positive: the pid. */
static pid_t spawn(int output, char *const argv[], char *const environment[])
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	pid_t pid;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	int r = posix_spawn(&pid, argv[0], &files, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return r ? -r : pid;
}

int program_run_watch(struct program_run *run, struct loop *loop, pid_t pid, int output,
		      unsigned seconds, program_done_fn *done)
{
	*run = (struct program_run){.process = -1, .output = output, .done = done};
	int r = pid;
	if (r > 0) {
		run->pid = pid;
		r = run->process = process_open(pid);
	}
	if (r >= 0)
		r = loop_io_init(&run->death, loop, run->process, EPOLLIN, ended);
	if (r == 0)
		r = loop_timer_init(&run->deadline, loop, time_is_up);
	if (r == 0)
		r = loop_timer_set(&run->deadline, seconds * NS_PER_S, 0);
	if (r < 0)
		discard(run);
	return r;
}

int program_run_start(struct program_run *run, struct loop *loop, char *const argv[],
		      char *const environment[], unsigned seconds, program_done_fn *done)
{
	int output = memfd_create("weir-program-output", MFD_CLOEXEC);
	pid_t pid = output < 0 ? -errno : spawn(output, argv, environment);

	return program_run_watch(run, loop, pid, output, seconds, done);
}

void program_run_stop(struct program_run *run)
{
	if (run->done)
		discard(run);
}

bool program_beside(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size);

	if (n <= 0 || (size_t)n >= size)
		return false;
	path[n] = '\0';
	char *end = strrchr(path, '/') + 1;
	size_t room = size - (size_t)(end - path);
	return snprintf(end, room, "%s", name) < (int)room;
}
