/* Compile requests: the way from a client to the service and back. */
#include "agent-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "compile-fixture.h"

/* test-compile* test the service itself. */
static void ask_to_compile(int fd, uint32_t id)
{
	struct weir_compile message = {.id = id};
	static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				  ".visible .entry k()\n{\n\tret;\n}\n";
	int file = fixture_file("k", ptx, sizeof(ptx) - 1, 90, 1u << WEIR_PERSISTENT);

	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), &file, 1), 0);
	close(file);
}

static void expect_compiled(const struct fake *fake, uint32_t id, enum weir_compile_status status)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX], r;

	rig_wait((r = fake_receive(fake->fd, &message, fds)) != -EAGAIN);
	assert_int_equal(r, 0);
	assert_int_equal(message.header.type, WEIR_COMPILED);
	assert_int_equal(message.compiled.id, id);
	assert_int_equal(message.compiled.status, status);
	if (status == WEIR_COMPILE_OK)
		close(fds[0]);
}

static void test_compile(void **state)
{
	static char answer[65536];

	(void)state;
	struct fake fake = fake_join(1);
	ask_to_compile(fake.fd, 7);
	expect_compiled(&fake, 7, WEIR_COMPILE_OK);
	ask_to_compile(fake.fd, 8);
	expect_compiled(&fake, 8, WEIR_COMPILE_OK);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "weir_compile_requests_total{result=\"ok\"} 2\n"));
	assert_non_null(strstr(answer, "weir_compilations_total 1\n"));
	assert_non_null(strstr(answer, "weir_compile_cache_hits_total 1\n"));
	assert_non_null(strstr(answer, "weir_compile_cache_objects 1\n"));
	assert_non_null(strstr(answer, "weir_compile_seconds_count 1\n"));
	fake_leave(&fake);
}

static void test_compile_off(void **state)
{
	(void)state;
	agent.compile.on = false;
	struct fake fake = fake_join(1);
	ask_to_compile(fake.fd, 7);
	expect_compiled(&fake, 7, WEIR_COMPILE_OFF);
	fake_leave(&fake);
}

static void test_compile_before_hello(void **state)
{
	(void)state;
	int fd = fake_connect();
	ask_to_compile(fd, 1);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
}

/* A client that takes no answers is cut off. */
static void test_compile_deaf(void **state)
{
	(void)state;
	struct fake fake = fake_join(1);
	agent.compile.on = false;
	for (int i = 0; i < 10000 && agent.sessions.n; i++) {
		struct weir_compile message = {.id = 1};
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
		weir_message_send(fake.fd, &message, sizeof(message), &null, 1);
		close(null);
		rig_pump();
	}
	assert_int_equal(agent.sessions.n, 0);
	close(fake.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_compile),
		AGENT_TEST(test_compile_off),
		AGENT_TEST(test_compile_before_hello),
		AGENT_TEST(test_compile_deaf),
	};

	return RUN_AGENT_TESTS(tests);
}
