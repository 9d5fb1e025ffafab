/* Kernels that do not leave the GPU (reports/overrun.h), and how processes end for that and for
 * other reasons (reports/ending.h). The clients' pages are the test's, their
 * processes are children of it, and the linker replaces what the driver counts. */
#include "fake-server.h"
#include "scheduler-world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "reports/ending.h"
#include "reports/overrun.h"
#include "scheduler/preemption.h"

#include "weir/base.h"

#define SECOND (1000 * MS)

static const struct config_overruns reports = {.action = OVERRUNS_REPORT, .after = 3};
static const struct config_overruns kills = {.action = OVERRUNS_KILL, .after = 3};

static struct {
	bool tells, sees; /* the driver counts; it counted this process */
	unsigned asked;
} driver;
static pid_t child;

void __wrap_process_use_ask(struct process_use *use, uint64_t now);
bool __wrap_process_use_tells(struct process_use *use, uint64_t since);
bool __wrap_process_use_find(struct process_use *use, pid_t pid, struct process_sample *out);

void __wrap_process_use_ask(struct process_use *use, uint64_t now)
{
	(void)use, (void)now;
	driver.asked++;
}

bool __wrap_process_use_tells(struct process_use *use, uint64_t since)
{
	(void)use, (void)since;
	return driver.tells;
}

bool __wrap_process_use_find(struct process_use *use, pid_t pid, struct process_sample *out)
{
	(void)use;
	*out = (struct process_sample){.pid = pid, .end = UINT64_MAX, .percent = 80};
	return driver.sees;
}

static struct {
	unsigned n;
	char last[256];
} events;

void __wrap_events_tell(struct events *to, const struct pod *pod, enum event_type type,
			const char *reason, const char *format, ...);
const struct pod *__wrap_pods_find(struct pods *pods, const char *uid);

void __wrap_events_tell(struct events *to, const struct pod *pod, enum event_type type,
			const char *reason, const char *format, ...)
{
	va_list arguments;

	(void)to, (void)pod, (void)type;
	events.n++;
	size_t n = (size_t)snprintf(events.last, sizeof(events.last), "%s: ", reason);
	va_start(arguments, format);
	vsnprintf(events.last + n, sizeof(events.last) - n, format, arguments);
	va_end(arguments);
}

const struct pod *__wrap_pods_find(struct pods *pods, const char *uid)
{
	static const struct pod pod;

	(void)pods, (void)uid;
	return &pod;
}

/* Without hardware preemption. */
static int set_up(void **state)
{
	driver.tells = driver.sees = false;
	driver.asked = events.n = 0;
	server = (struct fake_server){.says = MPS_NOT_SERVED, .gpu = &world.gpu, .pid = &child};
	int r = world_set_up(state);
	come(0, 1, 30);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	world.clients[0].pid = child;
	world.clients[0].process = process_open(child);
	assert_true(world.clients[0].process >= 0);
	return r;
}

static int tear_down(void **state)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	closep(&world.clients[0].process);
	return world_tear_down(state);
}

/* For so many seconds the kernel does not leave, and a look each second. */
static void stay(unsigned seconds, const struct config_overruns *config)
{
	for (unsigned i = 0; i < seconds; i++) {
		world.now += SECOND;
		world.status[0].overrun += SECOND;
		overrun_look(&world.gpu, config, world.now);
		ending_look(&world.gpu, NULL);
	}
}

static uint64_t told(void)
{
	return tenant_usage(&world.tenants[0], &world.gpu)->quotas.overruns;
}

static bool is_killed(void)
{
	int status = 0;

	return waitpid(child, &status, WNOHANG) == child && WIFSIGNALED(status);
}

static void is_told_once(void **state)
{
	(void)state;
	stay(3, &reports);
	assert_int_equal(told(), 0);
	assert_int_equal(driver.asked, 0);
	stay(2, &reports);
	assert_int_equal(told(), 1);
	assert_true(overrun_is_told(&world.clients[0]));
	stay(20, &reports);
	assert_int_equal(told(), 1);
	assert_false(is_killed());
	/* It has left. Another one is another case. */
	world.status[0].overrun = 0;
	stay(1, &reports);
	assert_false(overrun_is_told(&world.clients[0]));
	stay(8, &reports);
	assert_int_equal(told(), 2);
}

/* It shows at once, whatever the configuration wants to be told of. */
static void stays_until_it_ends(void **state)
{
	struct client *client = &world.clients[0];

	(void)state;
	client->account.outstanding = 1;
	world.status[0].overrun = MS;
	assert_int_equal(overrun_staying(client), 0);
	world.status[0].overrun = 20 * MS;
	assert_int_equal(overrun_staying(client), 20 * MS);
	assert_false(overrun_is_told(client));
	client->channels.usable = true;
	client->channels.stopped = true;
	assert_int_equal(overrun_staying(client), 0);
	client->channels.stopped = false;
	client->account.outstanding = 0;
	assert_int_equal(overrun_staying(client), 0);
}

static void another_kernel_begins_anew(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		stay(2, &reports);
		world.status[0].overrun = MS;
	}
	assert_int_equal(told(), 0);
}

/* A client that writes nonsense is told of, but no sooner than others. */
static void no_more_counts_than_the_time(void **state)
{
	(void)state;
	world.status[0].overrun = UINT64_MAX - 100 * SECOND;
	stay(3, &reports);
	assert_int_equal(told(), 0);
	stay(3, &reports);
	assert_int_equal(told(), 1);
}

static void what_the_hardware_stops_does_not_count(void **state)
{
	(void)state;
	world.clients[0].channels.usable = true;
	world.clients[0].channels.stopped = true;
	stay(20, &reports);
	assert_int_equal(told(), 0);
	/* Short slices, below others. */
	world.clients[0].channels.stopped = false;
	world.demand[1].word = 1;
	stay(20, &reports);
	assert_int_equal(told(), 0);
	/* In its own turns it does not end. */
	world.demand[1].word = 0;
	stay(8, &reports);
	assert_int_equal(told(), 1);
}

static void below_others_it_counts_without_hardware(void **state)
{
	(void)state;
	world.demand[1].word = 1;
	stay(8, &reports);
	assert_int_equal(told(), 1);
}

static void the_driver_denies_it(void **state)
{
	(void)state;
	driver.tells = true;
	stay(20, &kills);
	assert_int_equal(told(), 0);
	assert_false(is_killed());
	driver.sees = true;
	stay(1, &kills);
	assert_int_equal(told(), 1);
}

/* Clients of an MPS server may all be its own, for the driver. */
static void the_driver_does_not_count_in_servers(void **state)
{
	(void)state;
	driver.tells = true;
	world.status[0].flags = WEIR_STATUS_CONCURRENT;
	stay(8, &reports);
	assert_int_equal(told(), 1);
}

static void is_killed_by_config(void **state)
{
	const struct usage *usage;

	(void)state;
	stay(8, &kills);
	usage = tenant_usage(&world.tenants[0], &world.gpu);
	assert_int_equal(usage->quotas.overruns, 1);
	assert_int_equal(usage->quotas.killed[ENDING_OVERRUN], 1);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* It is gone in a moment. */
	stay(2, &kills);
	assert_int_equal(usage->quotas.killed[ENDING_OVERRUN], 1);
}

static uint64_t killed(void)
{
	return tenant_usage(&world.tenants[0], &world.gpu)->quotas.killed[ENDING_OVERRUN];
}

/* The server ends its work, after which it may report no kernel. Then its process ends. */
static void under_mps_its_work_ends_first(void **state)
{
	(void)state;
	world.status[0].flags = WEIR_STATUS_CONCURRENT;
	server.says = MPS_ENDS_WORK;
	stay(8, &kills);
	assert_true(server.asked > 0);
	assert_int_equal(killed(), 1);
	world.status[0].overrun = 0;
	stay(1, &kills);
	assert_false(is_killed());
	server.says = MPS_ENDED_WORK;
	stay(1, &kills);
	unsigned asked = server.asked;
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	stay(2, &kills);
	assert_int_equal(server.asked, asked);
	assert_int_equal(killed(), 1);
}

static void end_disobedient(struct gpu *gpu)
{
	ending_look(gpu, NULL);
}

/* Whatever its process is to be ended for. */
static void who_does_not_obey_ends_in_the_same_way(void **state)
{
	struct pods *some = (struct pods *)&events;
	const struct usage *usage;

	(void)state;
	world.tenants[0].identity.in_pod = true;
	world.gpu.end_disobedient = end_disobedient;
	world.status[0].flags = WEIR_STATUS_CONCURRENT;
	server.says = MPS_ENDS_WORK;
	scheduler_hold(&world.scheduler, &world.clients[0], 1000 * SECOND);
	for (unsigned i = 0; i < PREEMPTION_KILL; i++) {
		assert_int_equal(world.clients[0].ending.reason, ENDING_NONE);
		world.control[0].hold = 0;
		look_after(MS);
	}
	usage = tenant_usage(&world.tenants[0], &world.gpu);
	assert_int_equal(usage->quotas.disobeyed, PREEMPTION_KILL);
	assert_int_equal(server.asked, 1);
	assert_false(is_killed());
	server.says = MPS_ENDED_WORK;
	stay(1, &reports);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(usage->quotas.killed[ENDING_DISOBEDIENCE], 1);
	assert_int_equal(usage->quotas.killed[ENDING_OVERRUN], 0);
	ending_tell(NULL, some, &world.gpu);
	ending_tell(NULL, some, &world.gpu);
	assert_int_equal(events.n, 1);
	assert_string_equal(events.last, "HoldDisobeyedKilled: container : killed a process that "
					 "used GPU-x: it did not obey holds");
}

static void a_client_of_no_server_is_killed_at_once(void **state)
{
	(void)state;
	server.says = MPS_ENDS_WORK;
	stay(8, &kills);
	assert_int_equal(server.asked, 0);
	assert_int_equal(killed(), 1);
}

static void its_pod_is_told_once(void **state)
{
	struct pods *some = (struct pods *)&events; /* nobody looks inside */

	(void)state;
	world.tenants[0].identity.in_pod = true;
	for (unsigned i = 0; i < 20; i++) {
		stay(1, &reports);
		overrun_tell(NULL, some, &world.gpu);
	}
	assert_int_equal(events.n, 1);
	assert_string_equal(events.last,
			    "KernelOverruns: container : a kernel does not leave GPU-x "
			    "although others wait for it, 1 times so far");
	for (unsigned i = 0; i < 3; i++) {
		stay(1, &kills);
		overrun_tell(NULL, some, &world.gpu);
		ending_tell(NULL, some, &world.gpu);
	}
	assert_int_equal(events.n, 2);
	assert_string_equal(events.last, "KernelOverrunsKilled: container : killed a process that "
					 "used GPU-x: its kernel did not leave the GPU");
}

static void is_ignored_by_config(void **state)
{
	const struct config_overruns ignores = {.action = OVERRUNS_IGNORE, .after = 3};

	(void)state;
	stay(20, &ignores);
	assert_int_equal(told(), 0);
	assert_int_equal(world.clients[0].overrun.time, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(is_told_once),
		TEST(stays_until_it_ends),
		TEST(another_kernel_begins_anew),
		TEST(no_more_counts_than_the_time),
		TEST(what_the_hardware_stops_does_not_count),
		TEST(below_others_it_counts_without_hardware),
		TEST(the_driver_denies_it),
		TEST(the_driver_does_not_count_in_servers),
		TEST(is_killed_by_config),
		TEST(under_mps_its_work_ends_first),
		TEST(who_does_not_obey_ends_in_the_same_way),
		TEST(a_client_of_no_server_is_killed_at_once),
		TEST(its_pod_is_told_once),
		TEST(is_ignored_by_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
