/* What operators ask an agent, over HTTP and by weirctl. */
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
#include "daemon/commands.h"

static void test_http(void **state)
{
	static char answer[32768];

	(void)state;
	struct fake fake = fake_join(2);
	atomic_store(&fake.status->launches, 12);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	assert_non_null(strstr(answer, "version=0.0.4"));
	assert_non_null(strstr(answer,
			       "weir_launches_total{namespace=\"\",pod=\"\",container=\"uid "
			       "2 /\",gpu=\"GPU-30313233-3435-3637-3839-616263646500\"} 12\n"));
	assert_non_null(strstr(answer, "level=\"high\"} 1\n"));
	rig_fetch("/healthz", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	rig_fetch("/readyz", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	rig_fetch("/else", answer, sizeof(answer));
	assert_non_null(strstr(answer, "404"));
	fake_leave(&fake);
}

static void expect_metric(const char *text, const char *name, const char *value)
{
	char wanted[64], *line = strstr(text, name);

	assert_non_null(line);
	snprintf(wanted, sizeof(wanted), "} %s\n", value);
	assert_memory_equal(strchr(line, '}'), wanted, strlen(wanted));
}

/* What a container has of the node's, and what it was refused. */
static void test_quotas(void **state)
{
	static char answer[32768];
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	agent.config.clients_per_container = 2;
	struct fake one = fake_join(2), two = fake_join(2);
	int refused = fake_connect();
	rig_pump();
	assert_int_equal(fake_receive(refused, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_REFUSED);
	close(refused);
	rig_fetch("/metrics", answer, sizeof(answer));
	expect_metric(answer, "weir_container_clients{", "2");
	expect_metric(answer, "weir_container_demand_slots{", "2");
	expect_metric(answer, "weir_container_memory_accounts{", "0");
	expect_metric(answer, "weir_container_refused_total{", "1");
	expect_metric(answer, "weir_container_compile_busy_total{", "0");
	fake_leave(&one);
	fake_leave(&two);
}

/* The metric is the sum of a container's processes. */
static void test_kernels_that_are_tuned(void **state)
{
	static char answer[32768];

	(void)state;
	struct fake one = fake_join(4), other = fake_join(4);
	one.status->comparing = 3;
	other.status->comparing = 2;
	rig_fetch("/metrics", answer, sizeof(answer));
	char *line = strstr(answer, "weir_kernels_tuning{");
	assert_non_null(line);
	assert_memory_equal(strchr(line, '}'), "} 5\n", 4);
	cleanup(freep) char *status = rig_status();
	assert_non_null(strstr(status, "\"tuning\":2"));
	assert_non_null(strstr(status, "\"tuning\":3"));
	assert_non_null(strstr(status, "\"comparing\":3")); /* deprecated */
	other.status->comparing = 0;
	rig_fetch("/metrics", answer, sizeof(answer));
	line = strstr(answer, "weir_kernels_tuning{");
	assert_memory_equal(strchr(line, '}'), "} 3\n", 4);
	fake_leave(&one);
	fake_leave(&other);
}

/* The lateness of timers is an input of weir-sim. */
static void test_timers_are_counted(void **state)
{
	static char answer[32768];
	struct timespec pause = {.tv_nsec = 300000000};

	(void)state;
	uint64_t began = loop_now();
	struct fake one = fake_join(4), other = fake_join(4);
	struct scheduler_timers before = agent.scheduler.timers;
	one.status->outstanding = other.status->outstanding = 1;
	nanosleep(&pause, NULL); /* this thread is the agent, so nobody looks meanwhile */
	rig_pump();
	rig_fetch("/metrics", answer, sizeof(answer));
	struct scheduler_timers now = agent.scheduler.timers;
	uint64_t passed = loop_now() - began;
	assert_in_range(now.n - before.n, 1, passed / 300000); /* the interval is 0.3 ms or more */
	assert_in_range(now.late - before.late, pause.tv_nsec / 2, passed);
	char *line = strstr(answer, "\nweir_scheduler_timers_total ");
	assert_non_null(line);
	assert_in_range(strtoull(strchr(line + 1, ' '), NULL, 10), before.n + 1, now.n);
	line = strstr(answer, "\nweir_scheduler_late_seconds_total ");
	assert_non_null(line);
	double late = strtod(strchr(line + 1, ' '), NULL) * 1e9;
	assert_in_range((uint64_t)late, before.late + pause.tv_nsec / 2, now.late + 1000);
	cleanup(freep) char *status = rig_status();
	assert_non_null(strstr(status, "\"timersLateSeconds\":"));
	fake_leave(&one);
	fake_leave(&other);
}

static void test_refusals_are_counted(void **state)
{
	static char answer[32768];

	(void)state;
	uint64_t before = agent.sessions.refused[WEIR_REFUSED_GPU];
	agent.sessions.refused[WEIR_REFUSED_GPU] += 4;
	rig_fetch("/metrics", answer, sizeof(answer));
	char line[64];
	snprintf(line, sizeof(line), "weir_refused_total{reason=\"gpu\"} %u\n",
		 (unsigned)before + 4);
	assert_non_null(strstr(answer, line));
	agent.sessions.refused[WEIR_REFUSED_GPU] = before;
}

/* From the address 127.0.0.@host. */
static int connect_from(uint8_t host)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host - 1u)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	address.sin_port = htons(http_port(agent.http));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* A pod that connects and sends nothing. */
static void test_http_is_kept_open(void **state)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
	char answer[1024];
	int silent[40];

	(void)state;
	for (size_t i = 0; i < countof(silent); i++) {
		silent[i] = connect_from(2);
		rig_pump();
	}
	int fd = connect_from(3);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	rig_pump();
	ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	assert_true(n > 0 && memmem(answer, (size_t)n, "200 OK", 6));
	for (size_t i = 0; i < countof(silent); i++)
		close(silent[i]);
	close(fd);
}

static void ask(const char *request, char *answer, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rig_folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	rig_pump();
	n = recv(fd, answer, size - 1, MSG_DONTWAIT);
	answer[n > 0 ? n : 0] = '\0';
	close(fd);
	rig_pump();
	assert_int_equal(agent.control.n_peers, 0);
}

static void fetch_without_wait(int fd, char *answer, size_t size)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

	assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	rig_pump();
	ssize_t n = recv(fd, answer, size - 1, MSG_DONTWAIT);
	answer[n > 0 ? n : 0] = '\0';
}

/* A pod that never completes its request. */
static int slow_from(uint8_t host)
{
	static const char part[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n";
	int fd = connect_from(host);

	assert_true(send(fd, part, strlen(part), MSG_NOSIGNAL) > 0);
	rig_pump();
	return fd;
}

/* One byte on each connection; so none is idle. Returns how many are still open. */
static unsigned drip(const int *fds, size_t n)
{
	unsigned open = 0;
	char byte;

	for (size_t i = 0; i < n; i++) {
		(void)send(fds[i], "a", 1, MSG_NOSIGNAL);
		ssize_t r = recv(fds[i], &byte, 1, MSG_DONTWAIT);
		open += r < 0 && errno == EAGAIN;
	}
	rig_pump();
	return open;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	rig_pump();
}

static void expect_alive(void)
{
	char answer[64];

	ask("{\"command\": \"health\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"health\":\"ok\"}");
}

/* Four pods cannot use up the connections: the limit of an address is well below the whole. */
static void test_http_slow_peers(void **state)
{
	static char answer[32768];
	int slow[32];

	(void)state;
	for (size_t i = 0; i < countof(slow); i++)
		slow[i] = slow_from((uint8_t)(1 + i / 8));
	assert_true(drip(slow, countof(slow)) <= 16);
	expect_alive();
	int fd = connect_from(5);
	ssize_t n = -1;
	fetch_without_wait(fd, answer, sizeof(answer));
	if (!*answer)
		rig_wait((n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT)) > 0);
	assert_non_null(strstr(answer, "200 OK"));
	close(fd);
	close_all(slow, countof(slow));
}

/* More addresses use up the connections, but not for ever, and liveness does not depend on them. */
static void test_http_slow_everywhere(void **state)
{
	static char answer[32768];
	int slow[64];
	uint64_t start = loop_now();

	(void)state;
	for (size_t i = 0; i < countof(slow); i++)
		slow[i] = slow_from((uint8_t)(2 + i / 4));
	assert_int_equal(drip(slow, countof(slow)), 64);
	int fd = connect_from(60);
	fetch_without_wait(fd, answer, sizeof(answer));
	assert_string_equal(answer, "");
	while (drip(slow, countof(slow)) > 0) {
		assert_true(loop_now() - start < 12 * HTTP_CONNECTION_NS);
		expect_alive();
		assert_true(loop_step(&agent.loop, 500) >= 0);
	}
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	assert_non_null(strstr(answer, "weir_http_late_total 64\n"));
	ssize_t n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);
	assert_true(n > 0 && memmem(answer, (size_t)n, "200 OK", 6));
	close(fd);
	close_all(slow, countof(slow));
}

/* Connections that all end at once leave nothing else that could wake the agent. */
static void test_http_slow_together(void **state)
{
	static char answer[32768];
	const struct timespec pause = {.tv_sec = HTTP_CONNECTION_NS / NS_PER_S + 1};
	int slow[64];

	(void)state;
	for (size_t i = 0; i < countof(slow); i++)
		slow[i] = slow_from((uint8_t)(2 + i / 4));
	assert_int_equal(drip(slow, countof(slow)), 64);
	nanosleep(&pause, NULL);
	rig_pump();
	assert_int_equal(drip(slow, countof(slow)), 0);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	close_all(slow, countof(slow));
}

static void test_control(void **state)
{
	static char answer[8192];
	char large[600];

	(void)state;
	struct fake fake = fake_join(3);
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"level\":3"));
	assert_null(strstr(answer, "busyPeriodSeconds"));
	assert_null(strstr(answer, "maxBlockingSeconds"));
	fake.status->busy_period = 5000000;
	fake.control->max_blocking_time = 250000;
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"busyPeriodSeconds\":0.005"));
	assert_non_null(strstr(answer, "\"maxBlockingSeconds\":0.00025"));
	/* Deprecated names. */
	assert_non_null(strstr(answer, "\"burstSeconds\":0.005"));
	assert_non_null(strstr(answer, "\"patienceSeconds\":0.00025"));
	ask("{\"command\": \"reboot\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"unknown command\"}");
	ask("\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"not a command\"}");
	memset(large, '[', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	ask(large, answer, sizeof(answer));
	fake_leave(&fake);
}

static void expect_explained(const char *words)
{
	static char answer[65536];

	ask("{\"command\": \"explain\", \"pod\": \"web\"}\n", answer, sizeof(answer));
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
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"overrunSeconds\":12"));
	client->overrun = (struct overrun){0};
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
	ask("{\"command\": \"explain\", \"pod\": \"web\"}\n", answer, sizeof(answer));
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
	expect_metric(answer, "weir_blocks_saved_total{", "3");
	expect_metric(answer, "weir_blocks_drained_total{", "5");
	expect_metric(answer, "weir_saved_bytes_total{", "6291456");
	expect_metric(answer, "weir_partial_leaves_total{", "7");
	expect_metric(answer, "weir_loops_blocked_total{", "6");
	expect_metric(answer, "weir_loops_blocked_seconds_total{", "2.500000000");
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
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
	ask("{\"command\": \"explain\", \"pod\": \"default/web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "asks for 30 of the 100 weir.dev/gpu-share of one GPU\\n"));
	assert_non_null(strstr(answer, "\\nweir.dev/priority 'high' refused: the pod has level "
				       "low (QoS class BestEffort)"));
	assert_non_null(strstr(answer, "\\nweir.dev/prio is no annotation of Weir"));
	assert_non_null(strstr(answer, "evicted inside blocks: 3 saved (6.0 MiB), 5 finished"));
	assert_non_null(strstr(answer, "container main: level low, by "));
	expect_minimum_rate_explained();
	expect_overrun_explained();
	ask("{\"command\": \"explain\", \"pod\": \"other/web\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"error\":\"no such pod on this node, and the API"));
	ask("{\"command\": \"explain\", \"pod\": 7}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"expected the name of a pod\"}");
	/* A container that was restarted is told once. */
	fake_leave(&fake);
	strcpy(known_pod->containers[0].id, "decaf");
	strcpy(next_identity.container_id, "decaf");
	tell_changed(&agent);
	fake = fake_join(0);
	ask("{\"command\": \"explain\", \"pod\": \"default/web\"}\n", answer, sizeof(answer));
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
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
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
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
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

/* Refused with a reason, and nothing changes. */
static void test_bad_commands(void **state)
{
	static const struct {
		const char *request, *error;
	} bad[] = {
		{"{\"command\":\"policy\",\"name\":\"best\"}\n", "no policy of that name"},
		{"{\"command\":\"policy\",\"name\":7}\n", "no policy of that name"},
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
		ask(bad[i].request, answer, sizeof(answer));
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
	ask("{\"command\":\"policy\",\"name\":\"wfq\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"wfq\""));
	assert_true(a.control->flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(a.control->hold + b.control->hold, 1);
	assert_int_equal(b.control->hold, c.control->hold);
	ask("{\"command\":\"policy\",\"name\":\"levels\"}\n", answer, sizeof(answer));
	assert_int_equal(a.control->hold + b.control->hold, 0);
	assert_int_equal(a.control->flags, 0);
	ask("{\"command\":\"policy\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"levels\""));
	fake_leave(&a);
	fake_leave(&b);
	fake_leave(&c);
}

static void test_hold_by_command(void **state)
{
	char answer[512], request[128];

	(void)state;
	struct fake fake = fake_join(0);
	snprintf(request, sizeof(request),
		 "{\"command\":\"hold\",\"client\":%llu,\"seconds\":60}\n",
		 (unsigned long long)agent.sessions.clients.last_number);
	ask(request, answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"heldSeconds\":60"));
	assert_int_equal(fake.control->hold, 1);
	snprintf(request, sizeof(request), "{\"command\":\"hold\",\"client\":%llu,\"seconds\":0}\n",
		 (unsigned long long)agent.sessions.clients.last_number);
	ask(request, answer, sizeof(answer));
	assert_int_equal(fake.control->hold, 0);
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
		ask(request, answer, sizeof(answer));
		assert_int_equal(fake.control->workers, bounds[i]);
	}
	fake_leave(&fake);
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
		AGENT_TEST(test_http),
		AGENT_TEST(test_quotas),
		AGENT_TEST(test_kernels_that_are_tuned),
		AGENT_TEST(test_timers_are_counted),
		AGENT_TEST(test_refusals_are_counted),
		AGENT_TEST(test_http_is_kept_open),
		AGENT_TEST(test_http_slow_peers),
		AGENT_TEST(test_http_slow_everywhere),
		AGENT_TEST(test_http_slow_together),
		AGENT_TEST(test_control),
		AGENT_TEST(test_problems_of_a_pod),
		AGENT_TEST(test_names_of_any_bytes),
		AGENT_TEST(test_words_of_any_language),
		AGENT_TEST(test_file_changes_at_start),
		AGENT_TEST(test_bad_commands),
		AGENT_TEST(test_policy_by_command),
		AGENT_TEST(test_hold_by_command),
		AGENT_TEST(test_bound_by_command),
		AGENT_TEST(test_trace_by_command),
	};

	return RUN_AGENT_TESTS(tests);
}
