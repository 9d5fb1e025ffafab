/* Makes ioctls of type 'F' end in machine_rm_ioctl(): a filter of system calls turns each of them,
 * however it was made, into a SIGSYS of its thread, and the handler does the call's work.
 *
 * A thread that blocks SIGSYS dies of such a call, as of any trapped one. A child of fork() has the
 * handler, too. A program that such a process executes must not make these calls, or be a process
 * of this machine, too. */
#include "simcuda/machine/machine.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/rm.h"

static struct machine *machine;
static struct sigaction before;

#if defined(__x86_64__)
#define REGISTER(name, x86, arm)                         \
	static greg_t *name(ucontext_t *c)               \
	{                                                \
		return &c->uc_mcontext.gregs[REG_##x86]; \
	}
#elif defined(__aarch64__)
#define REGISTER(name, x86, arm)                       \
	static unsigned long long *name(ucontext_t *c) \
	{                                              \
		return &c->uc_mcontext.regs[arm];      \
	}
#else
#error "trap: which architecture is this?"
#endif
REGISTER(result, RAX, 0)
REGISTER(descriptor, RDI, 0)
REGISTER(request, RSI, 1)
REGISTER(argument, RDX, 2)

/* The program may have a filter of its own. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static void trapped(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	unsigned long code = (unsigned long)*request(c);
	int error = errno;

	if (info->si_syscall == SYS_ioctl && _IOC_TYPE(code) == RM_IOCTL_TYPE)
		*result(c) = machine_rm_ioctl(machine, (int)*descriptor(c), code,
					      (void *)(uintptr_t)*argument(c));
	else
		pass_on(number, info, context);
	errno = error;
}

static bool install_filter(void)
{
	/* clang-format off */
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RM_IOCTL_TYPE << 8, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	/* clang-format on */
	struct sock_fprog program = {.len = countof(filter), .filter = filter};
	long r;

	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (r < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			    &program);
	return r == 0;
}

bool machine_rm_trap(struct machine *m, bool only_if_free)
{
	static bool tried, installed;
	struct sigaction now, action = {.sa_sigaction = trapped,
					.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	machine = m;
	if (sigaction(SIGSYS, NULL, &now) < 0)
		return false;
	if (only_if_free && now.sa_handler != SIG_DFL)
		return false;
	if (now.sa_sigaction != trapped) {
		before = now;
		if (sigaction(SIGSYS, &action, NULL) < 0)
			return false;
	}
	if (!tried)
		installed = install_filter();
	tried = true;
	return installed;
}
