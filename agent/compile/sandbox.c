#include "compile/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "weir/arch.h"
#include "weir/base.h"

#define NOBODY 65534

/* System calls that a compiler needs once its files are open. */
static const int allowed[] = {
	SYS_read,      SYS_write,        SYS_pread64,        SYS_pwrite64,     SYS_brk,
	SYS_munmap,    SYS_mremap,       SYS_madvise,        SYS_futex,        SYS_sched_yield,
	SYS_getpid,    SYS_gettid,       SYS_clock_gettime,  SYS_gettimeofday, SYS_getrusage,
	SYS_getrandom, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall,
	SYS_exit,      SYS_exit_group,
};
/* Without PROT_EXEC in argument 2. */
static const int allowed_without_exec[] = {SYS_mmap, SYS_mprotect};

#define LOAD(field)      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(value)    BPF_STMT(BPF_RET | BPF_K, value)
#define UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define REFUSE           (SECCOMP_RET_ERRNO | EPERM)

#define FILTER_MAX (8 + 2 * countof(allowed) + 5 * (countof(allowed_without_exec) + 1))

/* System calls of another architecture kill the process. Other calls fail with EPERM, so that a
 * library that only tries goes on. (Calls of x32 have a bit that no listed number has.) */
static int install_filter(void)
{
	struct sock_filter filter[FILTER_MAX];
	unsigned short n = 0;
#define ADD(...) filter[n++] = (struct sock_filter)__VA_ARGS__

	ADD(LOAD(arch));
	ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_AUDIT, 1, 0));
	ADD(ANSWER(SECCOMP_RET_KILL_PROCESS));
	ADD(LOAD(nr));
	for (size_t i = 0; i < countof(allowed); i++) {
		ADD(UNLESS((uint32_t)allowed[i], 1));
		ADD(ANSWER(SECCOMP_RET_ALLOW));
	}
	for (size_t i = 0; i < countof(allowed_without_exec); i++) {
		ADD(UNLESS((uint32_t)allowed_without_exec[i], 4));
		ADD(LOAD(args[2]));
		ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
		ADD(ANSWER(SECCOMP_RET_ALLOW));
		ADD(ANSWER(REFUSE));
	}
	/* abort() signals a thread; only threads of this process are allowed. */
	ADD(UNLESS(SYS_tgkill, 4));
	ADD(LOAD(args[0]));
	ADD(UNLESS((uint32_t)getpid(), 1));
	ADD(ANSWER(SECCOMP_RET_ALLOW));
	ADD(ANSWER(REFUSE));
	ADD(ANSWER(REFUSE));
#undef ADD
	struct sock_fprog program = {.len = n, .filter = filter};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static int set_limits(const struct sandbox *sandbox)
{
	rlim_t memory = (rlim_t)sandbox->memory_mib << 20;
	const struct {
		int resource;
		rlim_t soft, hard;
	} limits[] = {
		{RLIMIT_AS, memory, memory},
		/* SIGXCPU first, so that the agent can tell; then SIGKILL. */
		{RLIMIT_CPU, sandbox->seconds, (rlim_t)sandbox->seconds + 1},
		{RLIMIT_FSIZE, sandbox->file_max, sandbox->file_max},
		{RLIMIT_CORE},
		{RLIMIT_NPROC},
		{RLIMIT_NOFILE},
		{RLIMIT_MEMLOCK},
		{RLIMIT_MSGQUEUE},
	};

	for (size_t i = 0; i < countof(limits); i++) {
		struct rlimit limit = {limits[i].soft, limits[i].hard};
		if (setrlimit(limits[i].resource, &limit) < 0)
			return -errno;
	}
	return 0;
}

/* The kernel kills it first when memory runs out, and schedules it last. */
static void step_back(void)
{
	cleanup(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		errno = 0;
	setpriority(PRIO_PROCESS, 0, 10);
}

/* Makes an empty read-only file system the root. Needs a mount namespace of its own. */
static void empty_root(void)
{
	cleanup(closep) int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return;
	cleanup(closep) int mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
						 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC |
							 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount >= 0 && fchdir(mount) == 0 && chroot(".") < 0)
		errno = 0; /* not fatal: the filter forbids opening files anyway */
}

/* One by one: some may not be permitted. */
static void leave_namespaces(void)
{
	static const int kinds[] = {CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS};

	if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0)
		return;
	for (size_t i = 0; i < countof(kinds); i++)
		if (unshare(kinds[i]) < 0)
			errno = 0;
	empty_root();
}

/* Root becomes nobody. Nobody keeps a capability. */
static int drop_rights(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int sandbox_enter(const struct sandbox *sandbox, const char **what)
{
	step_back();
	leave_namespaces();
	*what = "dropping rights";
	int r = drop_rights();
	/* After the change of user, which clears it. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		r = -errno;
	if (r == 0) {
		*what = "limits";
		r = set_limits(sandbox);
	}
	if (r == 0) {
		*what = "no new privileges";
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	}
	if (r == 0) {
		*what = "the filter of system calls";
		r = install_filter();
	}
	return r;
}
