/* What an agent says over HTTP, and what its peers can do to that. */
#include "agent-fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/http.h"

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
	rig_expect_metric(answer, "weir_container_clients{", "2");
	rig_expect_metric(answer, "weir_container_demand_slots{", "2");
	rig_expect_metric(answer, "weir_container_memory_accounts{", "0");
	rig_expect_metric(answer, "weir_container_refused_total{", "1");
	rig_expect_metric(answer, "weir_container_compile_busy_total{", "0");
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

	rig_ask("{\"command\": \"health\"}\n", answer, sizeof(answer));
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
	};

	return RUN_AGENT_TESTS(tests);
}
