/* What a process can do after sandbox_enter(). Each probe runs in its own child. */
#include "compile/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "weir/base.h"

static const struct sandbox limits = {.memory_mib = 256, .seconds = 1, .file_max = 1 << 20};

/* A probe returns 0 if the action was possible, otherwise errno. */
typedef int probe_fn(void);

enum { NO_SANDBOX = 200 };

/* Runs the probe in a child that has entered the sandbox. Returns the wait status. */
static int run(probe_fn *probe)
{
	const char *what;
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(sandbox_enter(&limits, &what) < 0 ? NO_SANDBOX : probe());
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int outcome(long result)
{
	return result < 0 ? errno : 0;
}

static int open_file(void)
{
	return outcome(open("/etc/passwd", O_RDONLY));
}

static int open_root(void)
{
	return outcome(syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0));
}

static int make_socket(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_process(void)
{
	return outcome(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
}

static int make_process_by_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	return outcome(child);
}

static int make_thread(void)
{
	return outcome(syscall(SYS_clone3, NULL, 0));
}

static int execute(void)
{
	static char name[] = "/bin/true";
	char *const argv[] = {name, NULL};

	return outcome(execv(name, argv));
}

static int signal_others(void)
{
	return outcome(kill(getppid(), 0));
}

static int trace_others(void)
{
	return outcome(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
}

static int stat_file(void)
{
	return outcome(access("/", F_OK));
}

static int map_code(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return code == MAP_FAILED ? errno : 0;
}

static int make_code(void)
{
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return outcome(mprotect(data, 4096, PROT_READ | PROT_EXEC));
}

static int raise_limit(void)
{
	return outcome(syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, NULL));
}

static int change_filter(void)
{
	return outcome(prctl(PR_SET_SECCOMP, 0));
}

static int make_file(void)
{
	return outcome(memfd_create("x", 0));
}

static int open_ring(void)
{
	return outcome(syscall(SYS_io_uring_setup, 1, NULL));
}

static void test_refused(void **state)
{
	static probe_fn *const probes[] = {
		open_file,   open_root, make_socket,   make_process,  make_process_by_fork,
		make_thread, execute,   signal_others, trace_others,  stat_file,
		map_code,    make_code, raise_limit,   change_filter, make_file,
		open_ring,
	};

	(void)state;
	for (size_t i = 0; i < countof(probes); i++) {
		int status = run(probes[i]);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != EPERM)
			print_error("probe %zu: status %#x\n", i, (unsigned)status);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), EPERM);
	}
}

static int work(void)
{
	char *memory = malloc(1 << 20);

	memset(memory, 1, 1 << 20);
	free(memory);
	return memory ? 0 : ENOMEM;
}

static int take_too_much(void)
{
	void *memory = mmap(NULL, (size_t)limits.memory_mib << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? errno : 0;
}

static int spin(void)
{
	for (volatile bool on = true; on;)
		;
	return 0;
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(run(work), 0);
	assert_int_equal(WEXITSTATUS(run(take_too_much)), ENOMEM);
	int status = run(spin);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

static int shared;

static pid_t neighbour;

/* Signals another process the way abort() signals itself. */
static int end_neighbour(void)
{
	return outcome(syscall(SYS_tgkill, neighbour, neighbour, SIGKILL));
}

static int abort_itself(void)
{
	abort();
}

/* All runs of the program are the same user, whichever client asked. */
static void test_neighbours(void **state)
{
	int ends[2], forever[2], status;
	const char *what;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(forever), 0);
	neighbour = fork();
	if (neighbour == 0) {
		sandbox_enter(&limits, &what);
		_exit(write(ends[1], "r", 1) == 1 && read(forever[0], &byte, 1) ? 0 : 1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	status = run(end_neighbour);
	assert_int_equal(waitpid(neighbour, NULL, WNOHANG), 0);
	assert_int_equal(WEXITSTATUS(status), EPERM);
	status = run(abort_itself);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(forever[i]);
	}
	kill(neighbour, SIGKILL);
	waitpid(neighbour, NULL, 0);
}

static int write_too_much(void)
{
	char bytes[4096] = {0};

	for (int i = 0; i < 1000; i++)
		if (write(shared, bytes, sizeof(bytes)) < 0)
			return errno;
	return 0;
}

static void test_file_limit(void **state)
{
	(void)state;
	shared = memfd_create("result", MFD_CLOEXEC);
	int status = run(write_too_much);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXFSZ);
	assert_true(lseek(shared, 0, SEEK_END) <= 1 << 20);
	close(shared);
}

static int leave_namespace(void)
{
	return outcome(unshare(CLONE_NEWNS));
}

/* Root of a container may lack the right. */
static bool may_unshare(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(leave_namespace());
	return waitpid(child, &status, 0) == child && status == 0;
}

static void check_namespaces(pid_t child)
{
	static const char *const kinds[] = {"mnt", "net", "ipc", "uts"};
	char path[64];
	struct stat ours, its;

	for (size_t i = 0; i < countof(kinds); i++) {
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		assert_int_equal(stat(path, &ours), 0);
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)child, kinds[i]);
		assert_int_equal(stat(path, &its), 0);
		assert_true(ours.st_ino != its.st_ino);
	}
	snprintf(path, sizeof(path), "/proc/%d/root", (int)child);
	DIR *root = opendir(path);
	assert_non_null(root);
	for (struct dirent *file; (file = readdir(root));)
		assert_int_equal(file->d_name[0], '.');
	closedir(root);
}

/* What the kernel reports about a process in the sandbox. */
static void test_nobody(void **state)
{
	char path[64], text[4096], byte;
	const char *what;
	int ends[2], forever[2];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(forever), 0);
	pid_t child = fork();
	if (child == 0) {
		sandbox_enter(&limits, &what);
		_exit(write(ends[1], "r", 1) == 1 && read(forever[0], text, 1) ? 0 : 1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	if (may_unshare())
		check_namespaces(child);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(forever[i]);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_non_null(strstr(text, "Uid:\t65534\t65534\t65534\t65534"));
	assert_non_null(strstr(text, "CapEff:\t0000000000000000"));
	assert_non_null(strstr(text, "CapPrm:\t0000000000000000"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	assert_non_null(strstr(text, "Seccomp:\t2"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_file_limit), cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
