/* The launch path allocates nothing and makes no system call: launches run on a thread on which
 * every system call is a fault, with malloc counted. */
#include "fake-agent.h"
#include "null-driver.h"

#include "launch/preempt.h"

#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define STREAM ((CUstream)(uintptr_t)0x10108)

static struct fake_agent agent;
static struct null_driver *driver;
static _Atomic int allocations, system_calls;
static _Atomic int last_call;
static __thread volatile int counting; /* volatile: malloc is not thought to read it */

#define COUNTED(type, name, parameters, arguments)                   \
	extern type __libc_##name parameters;                        \
	__attribute__((visibility("default"))) type name parameters; \
	type name parameters                                         \
	{                                                            \
		allocations += counting;                             \
		return __libc_##name arguments;                      \
	}
COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, calloc, (size_t n, size_t size), (n, size))
COUNTED(void *, realloc, (void *old, size_t size), (old, size))

static void trapped(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	system_calls++;
	last_call = info->si_syscall;
}

/* From here on this thread's system calls raise SIGSYS instead, but for those that end the thread.
 */
static void forbid_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigreturn, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigprocmask, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_futex, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL); /* cmocka has put one of its own there */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Without libc's own farewell, which makes system calls. */
__attribute__((noreturn)) static void end_thread(void)
{
	for (;;)
		syscall(SYS_exit, 0);
}

static void launches(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		CUfunction kernel = (CUfunction)(uintptr_t)(0x9000 + 0x10 * (i % 500));
		cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
		cuGraphLaunch((CUgraphExec)(uintptr_t)0x77770, STREAM);
	}
}

/* A kernel of 1000 blocks in each of the forms. */
static const enum weir_form forms[] = {WEIR_PERSISTENT, WEIR_RESUMABLE, WEIR_SLICED};
static struct rewritten rewritten[3];

static CUfunction formed_kernel(size_t i)
{
	return (CUfunction)(uintptr_t)(0xa000 + 0x10 * i);
}

static void formed_launches(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		cuLaunchKernel(formed_kernel(i % 3), 1000, 1, 1, 32, 1, 1, 0, STREAM, NULL, NULL);
}

static void *counted_launches(void *body)
{
	void (*launch)(unsigned count) = body;

	launch(3); /* this thread's first */
	forbid_system_calls();
	counting = 1;
	launch(20000);
	counting = 0;
	end_thread();
}

static void launch_counted(void (*launch)(unsigned count))
{
	pthread_t thread;

	pthread_create(&thread, NULL, counted_launches, launch);
	pthread_join(thread, NULL);
}

/* Ends the client. */
static void check_counted(void)
{
	if (system_calls)
		print_error("system call %d\n", last_call);
	assert_int_equal(system_calls, 0);
	assert_int_equal(allocations, 0);
	cuCtxDestroy_v2((CUcontext)(uintptr_t)0x10100);
	close(agent.client);
}

/* All states of the launch path: gates due and not, demand set and cleared, samples taken. */
static void check(uint8_t level)
{
	fake_agent_welcome_next(&agent, level, 1);
	launches(1);
	fake_agent_join();
	agent.control->above = 1;
	agent.control->flags = WEIR_CONTROL_HOLDABLE;

	int gates = driver->gates, events = driver->events_recorded;
	launch_counted(launches);
	assert_true(driver->gates > gates);
	assert_true(driver->events_recorded > events);
	check_counted();
}

static void at_the_bottom(void **state)
{
	(void)state;
	check(0);
}

static void in_the_middle(void **state)
{
	(void)state;
	check(2);
}

/* How many choices are made, of kernels that have forms. */
static unsigned settled(void)
{
	unsigned n = 0;

	for (size_t i = 0; tuning_at(i); i++)
		n += tuning_at(i)->tuner.n > 1 && tuning_at(i)->tuner.state == AUTOTUNE_SETTLED;
	return n;
}

static void land(struct client *client)
{
	struct preempt_slots *slots = atomic_load(&preempting_of(client)->slots);

	for (uint32_t i = 0; slots && slots->state == SLOTS_READY && i < FLIGHTS_MAX; i++) {
		uint32_t serial = atomic_load(&slots->slot[0].last) - i;
		atomic_store(&slots->slot[0].reports[serial % FLIGHTS_MAX].launch, serial);
	}
}

static void in_forms(void **state)
{
	struct client *client;

	(void)state;
	driver->elapsed_ns = driver->form_elapsed_ns = 1000000;
	fake_agent_welcome_next(&agent, 1, 1);
	launches(1);
	fake_agent_join();
	agent.control->above = 1;
	client = client_find((CUcontext)(uintptr_t)0x10100);
	for (size_t i = 0; i < 3; i++) {
		struct function *function = function_find(client, formed_kernel(i));
		rewritten[i].variants[forms[i]][0].function =
			(CUfunction)(uintptr_t)(NULL_FORM + 0x10 * i);
		atomic_store(&function->rewritten, &rewritten[i]);
		atomic_store(&function->state, FUNCTION_READY);
	}
	for (int i = 0; i < 2000 && settled() < 3; i++) {
		formed_launches(3);
		usleep(1000);
		land(client);
	}
	assert_int_equal(settled(), 3);

	unsigned long launched[3];
	for (size_t i = 0; i < 3; i++)
		launched[i] = preempting_of(client)->launches[forms[i]];
	launch_counted(formed_launches);
	for (size_t i = 0; i < 3; i++)
		assert_true(preempting_of(client)->launches[forms[i]] > launched[i] + 100);
	check_counted();
}

static void *one_of_each(void *unused)
{
	(void)unused;
	void *volatile first = malloc(1); /* may need more than later ones */
	free(first);
	forbid_system_calls();
	counting = 1;
	getppid();
	void *volatile memory = malloc(1);
	free(memory);
	counting = 0;
	end_thread();
}

static void the_test_can_fail(void **state)
{
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, one_of_each, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(system_calls, 1);
	assert_int_equal(allocations, 1);
	system_calls = allocations = 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_test_can_fail),
		cmocka_unit_test(at_the_bottom),
		cmocka_unit_test(in_the_middle),
		cmocka_unit_test(in_forms),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	/* A kernel that nobody knows may wait. */
	setenv("WEIR_FIRST_LAUNCH_MS", "0", 1);
	cuInit(0);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
	fake_agent_init(&agent);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	fake_agent_deinit(&agent);
	return failed;
}
