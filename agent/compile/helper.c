#include "compile/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/process.h"
#include "compile/request.h"

#include "weir/base.h"
#include "weir/error.h"

/* Above the descriptors that the program inherits. */
#define FDS_ABOVE 16

/* weir-compile limits its CPU time itself. This limits its real time, on a busy node, too. */
#define DEADLINE_FACTOR 4

/* In the child after fork(): only async-signal-safe functions. */
static void be_the_helper(const struct helper_program *program, int request, int result,
			  char *const argv[])
{
	char *const environment[] = {NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	request = fcntl(request, F_DUPFD, FDS_ABOVE);
	result = fcntl(result, F_DUPFD, FDS_ABOVE);
	int self = fcntl(program->fd, F_DUPFD_CLOEXEC, FDS_ABOVE);
	if (null < 0 || request < 0 || result < 0 || self < 0)
		_exit(REQUEST_NO_SANDBOX);
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			_exit(REQUEST_NO_SANDBOX);
	/* All descriptors close on exec except those made below. */
	if (syscall(SYS_close_range, 3, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */) < 0 ||
	    dup2(request, REQUEST_FD) < 0 || dup2(result, RESULT_FD) < 0)
		_exit(REQUEST_NO_SANDBOX);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	syscall(SYS_execveat, self, "", argv, environment, AT_EMPTY_PATH);
	_exit(REQUEST_NO_SANDBOX);
}

static int spawn(struct helper *helper, const struct helper_program *program, int request)
{
	char name[] = "weir-compile", machine_code[] = "--machine-code";
	char memory[32], seconds[32];
	char *const argv[] = {name, memory, seconds, program->machine_code ? machine_code : NULL,
			      NULL};

	snprintf(memory, sizeof(memory), "--memory=%u", program->memory_mib);
	snprintf(seconds, sizeof(seconds), "--seconds=%u", program->seconds);
	pid_t pid = fork();
	if (pid == 0)
		be_the_helper(program, request, helper->result, argv);
	if (pid < 0)
		return -errno;
	helper->pid = pid;
	helper->process = process_open(pid);
	return helper->process < 0 ? helper->process : 0;
}

static enum helper_outcome judge(const siginfo_t *info, bool late)
{
	static const enum helper_outcome by_exit[] = {
		[REQUEST_DONE] = HELPER_DONE,        [REQUEST_NO_SANDBOX] = HELPER_TROUBLE,
		[REQUEST_REFUSED] = HELPER_REFUSED,  [REQUEST_FAILED] = HELPER_FAILED,
		[REQUEST_NO_MEMORY] = HELPER_MEMORY,
	};

	if (late)
		return HELPER_TIME;
	if (info->si_code == CLD_EXITED) {
		unsigned status = (unsigned)info->si_status;
		/* The table has a gap between 0 and 10. */
		if (status >= countof(by_exit) || (status && !by_exit[status]))
			return HELPER_TROUBLE;
		return by_exit[status];
	}
	switch (info->si_status) {
	case SIGXCPU:
		return HELPER_TIME;
	case SIGXFSZ:
		return HELPER_MEMORY;
	case SIGKILL:
	case SIGTERM:
		return HELPER_KILLED;
	default:
		return HELPER_CRASH;
	}
}

static void reap(struct helper *helper, siginfo_t *info)
{
	*info = (siginfo_t){0};
	while (waitid(P_PID, (id_t)helper->pid, info, WEXITED) < 0 && errno == EINTR)
		;
	helper->pid = 0;
	loop_timer_deinit(&helper->deadline);
	loop_io_deinit(&helper->death);
	closep(&helper->process);
	helper->process = -1;
}

static void died(struct loop_io *io)
{
	struct helper *helper = container_of(io, struct helper, death);
	siginfo_t info;

	reap(helper, &info);
	helper->ended(helper, judge(&info, helper->late));
}

static void time_is_up(struct loop_timer *timer)
{
	struct helper *helper = container_of(timer, struct helper, deadline);

	helper->late = true;
	kill(helper->pid, SIGKILL);
}

int helper_start(struct helper *helper, struct loop *loop, const struct helper_program *program,
		 int request, helper_ended_fn *ended)
{
	*helper = (struct helper){.process = -1, .ended = ended};
	helper->result = memfd_create("weir-object", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = helper->result < 0 ? -errno : 0;
	if (r == 0)
		r = spawn(helper, program, request);
	if (r == 0)
		r = loop_io_init(&helper->death, loop, helper->process, EPOLLIN, died);
	if (r == 0)
		r = loop_timer_init(&helper->deadline, loop, time_is_up);
	if (r == 0)
		r = loop_timer_set(&helper->deadline, DEADLINE_FACTOR * program->seconds * NS_PER_S,
				   0);
	if (r < 0) {
		error_origin(r);
		helper_stop(helper);
	}
	return r;
}

void helper_kill(const struct helper *helper)
{
	if (helper->pid)
		kill(helper->pid, SIGKILL);
}

void helper_stop(struct helper *helper)
{
	siginfo_t info;

	if (!helper->ended)
		return;
	if (helper->pid) {
		kill(helper->pid, SIGKILL);
		reap(helper, &info);
	}
	closep(&helper->result);
	*helper = (struct helper){0};
}

const char *helper_outcome_name(enum helper_outcome outcome)
{
	static const char *const names[HELPER_OUTCOMES] = {
		[HELPER_DONE] = "done",       [HELPER_REFUSED] = "refused",
		[HELPER_FAILED] = "compiler", [HELPER_TIME] = "time",
		[HELPER_MEMORY] = "memory",   [HELPER_CRASH] = "crash",
		[HELPER_KILLED] = "killed",   [HELPER_TROUBLE] = "trouble",
	};

	return names[outcome];
}
