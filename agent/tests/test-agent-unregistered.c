/* Processes without libweir: reported or killed. The processes are real, their pods made up, and
 * the linker replaces the MPS server that may have them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-fixture.h"
#include "fake-server.h"

#define T     1000000000000ull /* some time, ns */
#define AFTER (10 * 1000000000ull)

static struct monitor monitor;
static pid_t listed;
static struct fake fake;

static nvmlReturn_t list(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *out)
{
	(void)device;
	*n = listed > 0;
	out[0] = (nvmlProcessInfo_t){.pid = (unsigned)listed};
	return NVML_SUCCESS;
}

static pid_t start_process(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A known pod with one container of that share. */
static void make_pod(uint32_t share)
{
	known_pod = calloc(1, sizeof(*known_pod) + sizeof(known_pod->containers[0]));
	assert_non_null(known_pod);
	strcpy(known_pod->uid, "u-1");
	strcpy(known_pod->namespace_, "ns");
	strcpy(known_pod->name, "web");
	known_pod->n_containers = 1;
	strcpy(known_pod->containers[0].id, "c1");
	strcpy(known_pod->containers[0].name, "main");
	known_pod->containers[0].share = share;
}

/* This process is a client of the GPU. */
static int set_up(void **state)
{
	(void)state;
	rig_set_up(state);
	agent_deinit(&agent);
	rig_start(false);
	next_identity = (struct container_identity){
		.in_pod = true, .pod_uid = "u-1", .container_id = "c1", .cgroup = "/x"};
	fake = fake_join(0);
	monitor = (struct monitor){.n = 1, .nvml.nvmlDeviceGetComputeRunningProcesses = list};
	monitor.all[0] = (struct monitor_gpu){.gpu = agent.gpus.all, .device = (nvmlDevice_t)&fake};
	listed = 0;
	server =
		(struct fake_server){.says = MPS_NOT_SERVED, .gpu = agent.gpus.all, .pid = &listed};
	return 0;
}

static int tear_down(void **state)
{
	fake_leave(&fake);
	rig_tear_down(state);
	free(known_pod);
	known_pod = NULL;
	return 0;
}

/* The container's metric has this value. */
static bool metric_says(const char *value)
{
	char line[256], *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	unregistered_metrics(out, &agent.report.unregistered);
	fclose(out);
	snprintf(line, sizeof(line),
		 "\nweir_unregistered_processes{namespace=\"ns\",pod=\"web\",container=\"main\","
		 "gpu=\"%s\"} %s\n",
		 agent.gpus.all->id, value);
	bool found = strstr(text, line);
	free(text);
	return found;
}

static void a_process_is_reported_when_it_does_not_come_back(void **state)
{
	(void)state;
	make_pod(30);
	listed = start_process();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER - 1);
	assert_false(metric_says("1"));
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_true(metric_says("1"));
	assert_int_equal(agent.report.unregistered.n_killed, 0);
	end_process(listed);
	/* NVML may list a dead process for a while. */
	unregistered_look(&agent.report.unregistered, &monitor, T + 2 * AFTER);
	assert_false(metric_says("1"));
	assert_null(agent.report.unregistered.all);
}

static void a_client_is_not_reported(void **state)
{
	(void)state;
	make_pod(30);
	listed = getpid();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	unregistered_look(&agent.report.unregistered, &monitor, T + 5 * AFTER);
	assert_false(metric_says("1"));
}

static void processes_without_a_share_are_not_reported(void **state)
{
	(void)state;
	listed = start_process();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	/* In an unknown pod, with a whole GPU, without a share, in another container. */
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_false(agent.report.unregistered.all->reported);
	make_pod(100);
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_false(agent.report.unregistered.all->reported);
	known_pod->containers[0].share = 0;
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_false(agent.report.unregistered.all->reported);
	known_pod->containers[0].share = 30;
	strcpy(known_pod->containers[0].id, "c2");
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_false(agent.report.unregistered.all->reported);
	strcpy(known_pod->containers[0].id, "c1");
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_true(agent.report.unregistered.all->reported);
	end_process(listed);
}

static void it_is_killed_if_the_configuration_says_so(void **state)
{
	int status;

	(void)state;
	make_pod(30);
	agent.config.unregistered.action = UNREGISTERED_KILL;
	listed = start_process();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_int_equal(waitpid(listed, &status, 0), listed);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(agent.report.unregistered.n_killed, 1);
	assert_int_equal(server.asked, 0);
}

static void under_mps_its_work_ends_first(void **state)
{
	(void)state;
	make_pod(30);
	agent.config.unregistered.action = UNREGISTERED_KILL;
	monitor.nvml.nvmlDeviceGetComputeRunningProcesses = NULL;
	monitor.nvml.nvmlDeviceGetMPSComputeRunningProcesses = list;
	server.says = MPS_ENDS_WORK;
	listed = start_process();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_int_equal(server.asked, 1);
	assert_int_equal(waitpid(listed, NULL, WNOHANG), 0);
	server.says = MPS_ENDED_WORK;
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER + 1);
	assert_int_equal(waitpid(listed, NULL, 0), listed);
	assert_int_equal(agent.report.unregistered.n_killed, 1);
}

static void a_new_process_with_its_pid_starts_from_zero(void **state)
{
	(void)state;
	make_pod(30);
	agent.config.unregistered.action = UNREGISTERED_KILL;
	listed = start_process();
	unregistered_look(&agent.report.unregistered, &monitor, T);
	agent.report.unregistered.all->started--; /* as if another process had this PID before */
	unregistered_look(&agent.report.unregistered, &monitor, T + AFTER);
	assert_int_equal(agent.report.unregistered.n_killed, 0);
	assert_int_equal(waitpid(listed, NULL, WNOHANG), 0);
	unregistered_look(&agent.report.unregistered, &monitor, T + 2 * AFTER);
	assert_int_equal(agent.report.unregistered.n_killed, 1);
	end_process(listed);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_reported_when_it_does_not_come_back),
		TEST(a_client_is_not_reported),
		TEST(processes_without_a_share_are_not_reported),
		TEST(it_is_killed_if_the_configuration_says_so),
		TEST(under_mps_its_work_ends_first),
		TEST(a_new_process_with_its_pid_starts_from_zero),
	};

	return RUN_AGENT_TESTS(tests);
}
