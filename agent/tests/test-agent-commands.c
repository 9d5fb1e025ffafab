/* What operators ask an agent by weirctl. */
#include "agent-fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "weir/http.h"
#include "daemon/control/commands.h"

static void test_control(void **state)
{
	static char answer[8192];
	char large[600];

	(void)state;
	struct fake fake = fake_join(3);
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"level\":3"));
	assert_null(strstr(answer, "busyPeriodSeconds"));
	assert_null(strstr(answer, "maxBlockingSeconds"));
	fake.status->busy_period = 5000000;
	fake.control->max_blocking_time = 250000;
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"busyPeriodSeconds\":0.005"));
	assert_non_null(strstr(answer, "\"maxBlockingSeconds\":0.00025"));
	/* Deprecated names. */
	assert_non_null(strstr(answer, "\"burstSeconds\":0.005"));
	assert_non_null(strstr(answer, "\"patienceSeconds\":0.00025"));
	rig_ask("{\"command\": \"reboot\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"unknown command\"}");
	rig_ask("\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"not a command\"}");
	memset(large, '[', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	rig_ask(large, answer, sizeof(answer));
	fake_leave(&fake);
}

static void expect_explained(const char *words)
{
	static char answer[65536];

	rig_ask("{\"command\": \"explain\", \"pod\": \"web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, words));
}

/* Of the only tenant, whose pod asks for more than its share. */
static void expect_minimum_rate_explained(void)
{
	strcpy(known_pod->min_rate, "0.8");
	tell_changed(&agent);
	struct min_rate *rate = &agent.tenants.all->usages->rate;
	expect_explained("weir.dev/min-rate '0.8' holds against lower levels only");
	expect_explained(
		"minimum rate 0.8 of its speed alone, against lower levels only: not known");
	rate->attained = 655;
	expect_explained("only: it has 0.655\\n");
	rate->missed = true;
	rate->hindered = MIN_RATE_EQUALS;
	expect_explained("it has 0.655; it is missed: same-level clients have work");
	*known_pod->min_rate = '\0';
	tell_changed(&agent);
}

/* Of the only client. */
static void expect_overrun_explained(void)
{
	struct client *client = agent.tenants.all->clients;
	char answer[65536];

	client->overrun = (struct overrun){.time = 12000000000ull, .told = true};
	expect_explained("its kernel has not left the GPU for 12 s, although others wait, and no "
			 "hardware preemption can stop it");
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"overrunSeconds\":12"));
	client->overrun = (struct overrun){0};
}

/* Of the only client, whose pages are @fake's. */
static void expect_staying_shown(struct fake *fake)
{
	char answer[65536];

	fake->status->outstanding = 1;
	fake->status->overrun = 250000000;
	expect_explained("its kernel runs natively and keeps the GPU to its end: 0.25 s so far, "
			 "although others wait");
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"state\":\"stays\""));
	assert_non_null(strstr(answer, "\"staysSeconds\":0.25"));
	fake->status->outstanding = 0;
	fake->status->overrun = 0;
}

/* Of the only client. */
static void expect_hold_explained(void)
{
	struct client *client = agent.tenants.all->clients;

	client->held_until = loop_now() + 60 * NS_PER_S;
	expect_explained("is held by hand for another 60 s (weirctl release)");
	client->held_until = 0;
}

/* A pod whose annotations do not hold: in metrics, status, its table, and in words. */
static void test_problems_of_a_pod(void **state)
{
	static char answer[65536];

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	known_pod = calloc(1, sizeof(*known_pod) + sizeof(known_pod->containers[0]));
	assert_non_null(known_pod);
	strcpy(known_pod->uid, "u-1");
	strcpy(known_pod->namespace_, "default");
	strcpy(known_pod->name, "web");
	strcpy(known_pod->priority, "high");
	known_pod->qos = CONTAINER_QOS_BEST_EFFORT;
	strcpy(known_pod->unknown[0], "weir.dev/prio");
	snprintf(known_pod->node, sizeof(known_pod->node), "%s", agent.config.kubernetes.node);
	known_pod->n_containers = 1;
	strcpy(known_pod->containers[0].id, "c0ffee");
	strcpy(known_pod->containers[0].name, "main");
	known_pod->containers[0].share = known_pod->least_share = known_pod->request = 30;
	next_identity = (struct container_identity){.in_pod = true,
						    .qos = CONTAINER_QOS_BEST_EFFORT,
						    .pod_uid = "u-1",
						    .container_id = "c0ffee",
						    .cgroup = "/kubepods"};
	tell_changed(&agent);
	rig_ask("{\"command\": \"explain\", \"pod\": \"web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "no process of it has called CUDA"));
	struct fake fake = fake_join(0);
	fake.status->blocks_saved = 3;
	fake.status->bytes_saved = 6 << 20;
	fake.status->blocks_drained = 5;
	fake.status->partial_leaves = 7;
	fake.status->loops = 2;
	fake.status->loops_on_gpu = 1;
	fake.status->loops_waiting[1] = 8;
	fake.status->loops_waiting[2] = 1;
	fake.status->loops_blocked = 6;
	fake.status->loops_blocked_time = 2500000000;
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "weir_pod_problems{namespace=\"default\",pod=\"web\","
				       "subject=\"weir.dev/priority\",problem=\"refused\"} 1\n"));
	assert_non_null(strstr(answer, "subject=\"weir.dev/prio\",problem=\"invalid\"} 1\n"));
	assert_non_null(strstr(answer, "weir_pods_refused_total 0\n"));
	rig_expect_metric(answer, "weir_blocks_saved_total{", "3");
	rig_expect_metric(answer, "weir_blocks_drained_total{", "5");
	rig_expect_metric(answer, "weir_saved_bytes_total{", "6291456");
	rig_expect_metric(answer, "weir_partial_leaves_total{", "7");
	rig_expect_metric(answer, "weir_loops_blocked_total{", "6");
	rig_expect_metric(answer, "weir_loops_blocked_seconds_total{", "2.500000000");
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	cJSON *json = cJSON_Parse(answer);
	const cJSON *pods = cJSON_GetObjectItem(json, "pods");
	const cJSON *client = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "clients"), 0);
	assert_int_equal(cJSON_GetArraySize(pods), 1);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(client, "problems")), 2);
	assert_string_equal(cJSON_GetObjectItem(client, "loop")->valuestring,
			    "on GPU network:8 timers:1");
	assert_int_equal(cJSON_GetObjectItem(client, "loops")->valueint, 2);
	assert_int_equal(cJSON_GetObjectItem(client, "loopsOnGpu")->valueint, 1);
	const cJSON *waits = cJSON_GetObjectItem(client, "loopsWaitFor");
	assert_int_equal(cJSON_GetObjectItem(waits, "network")->valueint, 8);
	assert_int_equal(cJSON_GetObjectItem(waits, "files")->valueint, 0);
	assert_int_equal(cJSON_GetObjectItem(client, "loopsBlocked")->valueint, 6);
	assert_int_equal(cJSON_GetObjectItem(client, "blocksSaved")->valueint, 3);
	assert_int_equal(cJSON_GetObjectItem(client, "blocksDrained")->valueint, 5);
	assert_int_equal(cJSON_GetObjectItem(client, "bytesSaved")->valueint, 6 << 20);
	cJSON_Delete(json);
	rig_ask("{\"command\": \"explain\", \"pod\": \"default/web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "asks for 30 of the 100 weir.dev/gpu-share of one GPU\\n"));
	assert_non_null(strstr(answer, "\\nweir.dev/priority 'high' refused: the pod has level "
				       "low (QoS class BestEffort)"));
	assert_non_null(strstr(answer, "\\nweir.dev/prio is no annotation of Weir"));
	assert_non_null(strstr(answer, "evicted inside blocks: 3 saved (6.0 MiB), 5 finished"));
	assert_non_null(strstr(answer, "container main: level low, by "));
	expect_minimum_rate_explained();
	expect_overrun_explained();
	expect_staying_shown(&fake);
	expect_hold_explained();
	rig_ask("{\"command\": \"explain\", \"pod\": \"other/web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"error\":\"no such pod on this node, and the API"));
	rig_ask("{\"command\": \"explain\", \"pod\": 7}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"expected the name of a pod\"}");
	/* A container that was restarted is told once. */
	fake_leave(&fake);
	strcpy(known_pod->containers[0].id, "decaf");
	strcpy(next_identity.container_id, "decaf");
	tell_changed(&agent);
	fake = fake_join(0);
	rig_ask("{\"command\": \"explain\", \"pod\": \"default/web\"}\n", answer, sizeof(answer));
	const char *told = strstr(answer, "container main: ");
	assert_non_null(told);
	assert_null(strstr(told + 1, "container main: "));
	assert_non_null(strstr(told, "process "));
	fake_leave(&fake);
	free(take(known_pod));
	tell_changed(&agent);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_null(strstr(answer, "weir_pod_problems{"));
}

/* One invalid byte makes Prometheus refuse the page, and JSON parsers refuse the answer. */
static bool is_utf8(const char *text)
{
	return mbstowcs(NULL, text, 0) != (size_t)-1;
}

/* Users choose names of cgroups. A path that is too long is cut at any byte. */
static void test_names_of_any_bytes(void **state)
{
	static const char *const names[] = {"/a\xff\xc3", "/caf\xc3\xa9",
					    "/\xed\xa0\x80\xf4\x90\x80\x80",
					    "/\xc0\xaf\xf0\x9f\x98\x80\xe2\x82"};
	static char answer[65536];
	struct fake fakes[countof(names)];

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	assert_false(is_utf8(names[0]));
	for (size_t i = 0; i < countof(names); i++) {
		snprintf(next_identity.cgroup, sizeof(next_identity.cgroup), "%s", names[i]);
		fakes[i] = fake_join(2);
	}
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "container=\"uid 2 /a??\""));
	assert_non_null(strstr(answer, "container=\"uid 2 /caf\xc3\xa9\""));
	assert_non_null(strstr(answer, "container=\"uid 2 /??\xf0\x9f\x98\x80??\""));
	assert_true(is_utf8(answer));
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"cgroup\":\"/a??\""));
	assert_non_null(strstr(answer, "\"cgroup\":\"/caf\xc3\xa9\""));
	assert_true(is_utf8(answer));
	setlocale(LC_CTYPE, "C");
	for (size_t i = 0; i < countof(names); i++)
		fake_leave(&fakes[i]);
}

/* A long annotation may be cut inside a UTF-8 character. */
static void test_words_of_any_language(void **state)
{
	static char answer[8192];

	(void)state;
	struct fake fake = fake_join(2);
	struct tenant *tenant = agent.tenants.all;
	memset(tenant->wanted_weight, '\xc3', sizeof(tenant->wanted_weight) - 1);
	tenant->weight_refused = true;
	memset(tenant->reason, '\xe2', sizeof(tenant->reason) - 1);
	rig_ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"weightRefused\":\"???????????????????????????????\""));
	assert_null(strpbrk(answer, "\xc3\xe2"));
	fake_leave(&fake);
}

/* The file may change between the agent's start and its first look at the file. */
static void test_file_changes_at_start(void **state)
{
	static char answer[32768];
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/f.yaml", rig_folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("policy: wfq\n", file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(agent.scheduler.policy->name, "whpf");
	assert_int_equal(agent_follow(&agent, path), 0);
	assert_string_equal(agent.scheduler.policy->name, "wfq");
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_null(strstr(answer, "weir_config_hash 0\n"));
	assert_non_null(strstr(answer, "weir_config_last_reload_successful 1\n"));
	assert_non_null(strstr(answer, "weir_config_reloads_total{result=\"taken\"} 0\n"));
	unlink(path);
}

#define NO_POLICY \
	"no policy of that name; there are hpf, whpf, ffs, static, dynamic, wfq, levels, coexec"

/* Refused with a reason, and nothing changes. */
static void test_bad_commands(void **state)
{
	static const struct {
		const char *request, *error;
	} bad[] = {
		{"{\"command\":\"policy\",\"name\":\"best\"}\n", NO_POLICY},
		{"{\"command\":\"policy\",\"name\":7}\n", NO_POLICY},
		{"{\"command\":\"hold\",\"client\":99,\"seconds\":1}\n",
		 "no client of that number"},
		{"{\"command\":\"hold\",\"client\":\"1\",\"seconds\":1}\n",
		 "no client of that number"},
		{"{\"command\":\"hold\",\"client\":1,\"seconds\":-1}\n",
		 "expected 0 to 3600 seconds"},
		{"{\"command\":\"hold\",\"client\":1,\"seconds\":1e300}\n",
		 "expected 0 to 3600 seconds"},
		{"{\"command\":\"bound\",\"client\":99,\"workers\":1}\n",
		 "no client of that number"},
		{"{\"command\":\"bound\",\"client\":1}\n", "expected 0 to 32 workers"},
		{"{\"command\":\"bound\",\"client\":1,\"workers\":33}\n",
		 "expected 0 to 32 workers"},
		{"{\"command\":\"bound\",\"client\":1,\"workers\":-1}\n",
		 "expected 0 to 32 workers"},
		{"{\"command\":\"trace\",\"seconds\":0}\n", "expected up to 3600 seconds"},
		{"{\"command\":\"trace\",\"seconds\":1,\"gpu\":\"GPU-x\"}\n", "no such GPU"},
		{"{\"command\":5}\n", "not a command"},
	};
	char answer[512], expected[128];

	(void)state;
	struct fake fake = fake_join(0);
	for (size_t i = 0; i < countof(bad); i++) {
		rig_ask(bad[i].request, answer, sizeof(answer));
		snprintf(expected, sizeof(expected), "{\"error\":\"%s\"}", bad[i].error);
		assert_string_equal(answer, expected);
	}
	assert_int_equal(fake.control->hold, 0);
	assert_null(agent.scheduler.record.gpu);
	fake_leave(&fake);
}

static void test_policy_by_command(void **state)
{
	char answer[512];

	(void)state;
	/* The second of two containers has two processes, which may wait for each other. */
	struct fake a = fake_join(0), b = fake_join(4), c = fake_join(4);
	a.status->outstanding = b.status->outstanding = c.status->outstanding = 1;
	rig_ask("{\"command\":\"policy\",\"name\":\"wfq\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"wfq\""));
	assert_true(a.control->flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(a.control->hold + b.control->hold, 1);
	assert_int_equal(b.control->hold, c.control->hold);
	rig_ask("{\"command\":\"policy\",\"name\":\"levels\"}\n", answer, sizeof(answer));
	assert_int_equal(a.control->hold + b.control->hold, 0);
	assert_int_equal(a.control->flags, 0);
	rig_ask("{\"command\":\"policy\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"levels\""));
	fake_leave(&a);
	fake_leave(&b);
	fake_leave(&c);
}

/* What status says of the only hold: seconds from now. */
static void expect_hold_to_end(double from, double to)
{
	static const char name[] = "\"holdEndsSeconds\":";
	static char answer[8192];

	rig_ask("{\"command\":\"status\"}\n", answer, sizeof(answer));
	const char *found = strstr(answer, name);
	assert_non_null(found);
	double seconds = strtod(found + strlen(name), NULL);
	assert_true(seconds > from && seconds <= to);
	assert_null(strstr(found + 1, name));
}

static void test_hold_by_command(void **state)
{
	static char text[8192];
	char answer[512], request[128];

	(void)state;
	struct fake fake = fake_join(0);
	snprintf(request, sizeof(request),
		 "{\"command\":\"hold\",\"client\":%llu,\"seconds\":60}\n",
		 (unsigned long long)agent.sessions.clients.last_number);
	rig_ask(request, answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"heldSeconds\":60"));
	assert_int_equal(fake.control->hold, 1);
	expect_hold_to_end(59, 60);
	snprintf(request, sizeof(request), "{\"command\":\"hold\",\"client\":%llu,\"seconds\":0}\n",
		 (unsigned long long)agent.sessions.clients.last_number);
	rig_ask(request, answer, sizeof(answer));
	assert_int_equal(fake.control->hold, 0);
	rig_ask("{\"command\":\"status\"}\n", text, sizeof(text));
	assert_null(strstr(text, "holdEndsSeconds"));
	fake_leave(&fake);
}

static void test_bound_by_command(void **state)
{
	static const unsigned bounds[] = {3, 32, 0};
	char answer[512], request[128];

	(void)state;
	struct fake fake = fake_join(0);
	for (size_t i = 0; i < countof(bounds); i++) {
		snprintf(request, sizeof(request),
			 "{\"command\":\"bound\",\"client\":%llu,\"workers\":%u}\n",
			 (unsigned long long)agent.sessions.clients.last_number, bounds[i]);
		rig_ask(request, answer, sizeof(answer));
		assert_int_equal(fake.control->workers, bounds[i]);
	}
	fake_leave(&fake);
}

/* What the policy coexec has found out, kernels in order of their numbers. */
static void test_sets_by_command(void **state)
{
	struct coexec_memory *memory = &agent.scheduler.memory;
	char answer[512];

	(void)state;
	rig_ask("{\"command\":\"coexec-sets\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"sets\":[]}");
	coexec_memory_put(memory, (uint64_t[]){0xfedcba9876543210, 3}, 2, (uint8_t[]){6, 2}, 1.25);
	rig_ask("{\"command\":\"coexec-sets\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"sets\":[{\"kernels\":[\"0000000000000003\","
				    "\"fedcba9876543210\"],\"workers\":[2,6],"
				    "\"speedUp\":1.25}]}");
}

static void import_set(const char *set, char answer[512])
{
	char request[512];

	snprintf(request, sizeof(request), "{\"command\":\"import-coexec-set\",\"set\":%s}\n", set);
	rig_ask(request, answer, 512);
}

/* What another agent has found out. */
static void test_import_sets_by_command(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"[]",
		"{\"kernels\":[],\"workers\":[],\"speedUp\":1}",
		"{\"kernels\":[\"0000000000000003\"],\"workers\":[],\"speedUp\":1}",
		"{\"kernels\":[\"000000000000000g\"],\"workers\":[1],\"speedUp\":1}",
		"{\"kernels\":[\"0000000000000000\"],\"workers\":[1],\"speedUp\":1}",
		"{\"kernels\":[\"03\"],\"workers\":[1],\"speedUp\":1}",
		"{\"kernels\":[3],\"workers\":[1],\"speedUp\":1}",
		"{\"kernels\":[\"0000000000000003\"],\"workers\":[-1],\"speedUp\":1}",
		"{\"kernels\":[\"0000000000000003\"],\"workers\":[300],\"speedUp\":1}",
		"{\"kernels\":[\"0000000000000003\"],\"workers\":[1],\"speedUp\":9}",
		"{\"kernels\":[\"0000000000000003\"],\"workers\":[1]}",
	};
	struct coexec_memory *memory = &agent.scheduler.memory;
	uint8_t workers[COEXEC_MOST];
	char answer[512];

	(void)state;
	for (size_t i = 0; i < countof(wrong); i++) {
		import_set(wrong[i], answer);
		assert_non_null(strstr(answer, "error"));
	}
	rig_ask("{\"command\":\"coexec-sets\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"sets\":[]}");
	import_set("{\"kernels\":[\"fedcba9876543210\",\"0000000000000003\"],\"workers\":[6,2],"
		   "\"speedUp\":1.25}",
		   answer);
	assert_string_equal(answer, "{}");
	assert_true(coexec_memory_find(memory, (uint64_t[]){3, 0xfedcba9876543210}, 2, workers) ==
		    1.25);
	assert_memory_equal(workers, ((uint8_t[]){2, 6}), 2);
	rig_ask("{\"command\":\"forget-coexec-sets\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"forgotten\":1}");
	assert_false(coexec_memory_knows(memory, 3));
}

static int start_recording(double seconds)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[128];

	snprintf(request, sizeof(request), "{\"command\":\"trace\",\"seconds\":%f}\n", seconds);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rig_folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	rig_wait(agent.scheduler.record.gpu);
	return fd;
}

static void test_trace_by_command(void **state)
{
	char answer[4096];
	ssize_t n = -1;

	(void)state;
	struct fake fake = fake_join(0);
	int fd = start_recording(1);
	static const char again[] = "{\"command\":\"trace\",\"seconds\":1}";
	uint64_t later;
	char *refusal = commands_answer(&agent.commands, again, sizeof(again) - 1, &later);
	assert_string_equal(refusal, "{\"error\":\"somebody else records\"}");
	free(refusal);
	fake.status->gpu_time = 7000000;
	while (n < 0) {
		assert_true(loop_step(&agent.loop, -1) >= 0);
		n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
	}
	answer[n] = '\0';
	assert_non_null(strstr(answer, " 7000000ns\\nend "));
	close(fd);

	/* A peer that hangs up ends its recording. */
	close(start_recording(60));
	rig_wait(!agent.scheduler.record.gpu);
	fake_leave(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_control),
		AGENT_TEST(test_problems_of_a_pod),
		AGENT_TEST(test_names_of_any_bytes),
		AGENT_TEST(test_words_of_any_language),
		AGENT_TEST(test_file_changes_at_start),
		AGENT_TEST(test_bad_commands),
		AGENT_TEST(test_policy_by_command),
		AGENT_TEST(test_hold_by_command),
		AGENT_TEST(test_bound_by_command),
		AGENT_TEST(test_sets_by_command),
		AGENT_TEST(test_import_sets_by_command),
		AGENT_TEST(test_trace_by_command),
	};

	return RUN_AGENT_TESTS(tests);
}
