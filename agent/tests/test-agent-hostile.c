/* Hostile and broken clients are refused with a reason, and the agent leaks nothing. */
#include "agent-fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/session.h"
#include "daemon/commands.h"

static void expect_bad(const void *packet, size_t size, enum weir_refusal reason)
{
	int fd = fake_connect();

	assert_int_equal(send(fd, packet, size, 0), size);
	expect_refused(fd, reason);
}

static void test_bad_messages(void **state)
{
	static char answer[32768];
	uint8_t large[WEIR_MESSAGE_MAX + 1] = {0};
	struct weir_hello message;

	(void)state;
	message = fake_hello(WEIR_BIT_NONE);
	message.header.version = 0;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_VERSION);
	message = fake_hello(WEIR_BIT_NONE);
	expect_bad(&message, 20, WEIR_REFUSED_MESSAGE);
	expect_bad("x", 1, WEIR_REFUSED_MESSAGE);
	expect_bad(large, sizeof(large), WEIR_REFUSED_MESSAGE);
	message = fake_hello(64);
	expect_bad(&message, sizeof(message), WEIR_REFUSED_MESSAGE);
	message = fake_hello(WEIR_BIT_NONE);
	message.header.type = WEIR_LEVEL;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_MESSAGE);
	assert_true(agent.sessions.refused[WEIR_REFUSED_MESSAGE] == 5);
	assert_true(agent.sessions.refused[WEIR_REFUSED_VERSION] == 1);
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\nweir_refused_total{reason=\"message\"} 5\n"));
	assert_non_null(strstr(answer, "\nweir_refused_total{reason=\"gpu\"} 0\n"));
}

/* The agent ignores messages of a later library, before and after HELLO. */
static void test_unknown_type(void **state)
{
	struct weir_hello message = fake_hello(WEIR_BIT_NONE), odd = message;
	struct fake fake = {.fd = fake_connect()};

	(void)state;
	odd.header.type = 77;
	assert_int_equal(weir_message_send(fake.fd, &odd, sizeof(odd), NULL, 0), 0);
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
	assert_int_equal(weir_message_send(fake.fd, &odd, sizeof(odd), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	assert_int_equal(agent.sessions.n, 1);
	fake_leave(&fake);
}

/* NVML lists other GPUs only. */
static void test_unknown_gpu(void **state)
{
	struct weir_hello message = fake_hello(WEIR_BIT_NONE);

	(void)state;
	agent.gpus.listed = true;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_GPU);
}

static void test_unknown_gpus_are_limited(void **state)
{
	(void)state;
	for (int i = 0; i <= GPUS_MAX; i++) {
		struct weir_hello message = fake_hello(WEIR_BIT_NONE);
		struct fake fake = {.fd = fake_connect()};

		message.gpu[3] = (uint8_t)i;
		assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
		if (i == GPUS_MAX) {
			expect_refused(fake.fd, WEIR_REFUSED_GPU);
			break;
		}
		rig_pump();
		fake_welcome(&fake);
		fake_leave(&fake);
	}
	assert_int_equal(agent.gpus.n, GPUS_MAX);
}

static void test_limits(void **state)
{
	struct fake fakes[90];
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	for (int i = 0; i < 80; i++)
		fakes[i] = fake_join(1);
	int fd = fake_connect();
	rig_pump();
	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	close(fd);
	for (int i = 80; i < 90; i++)
		fakes[i] = fake_join(2);
	fd = fake_connect();
	rig_pump();
	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	close(fd);
	for (int i = 0; i < 90; i++)
		close(fakes[i].fd);
	rig_pump();
	assert_int_equal(agent.sessions.n, 0);
}

/* Refused while the disk is full, and welcome once there is room. */
static void test_no_room_for_pages(void **state)
{
	struct weir_hello message = fake_hello(WEIR_BIT_NONE);
	int dir = agent.gpus.root.dir;

	(void)state;
	agent.gpus.root.dir = -1;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_INTERNAL);
	agent.gpus.root.dir = dir;
	struct fake fake = fake_join(1);
	fake_leave(&fake);
}

static void test_unseen_process(void **state)
{
	(void)state;
	identify_error = -ENXIO;
	expect_refused(fake_connect(), WEIR_REFUSED_INTERNAL);
}

static void test_silent(void **state)
{
	(void)state;
	int fd = fake_connect();
	rig_pump();
	assert_int_equal(agent.sessions.n, 1);
	rig_wait(!agent.sessions.n);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
}

/* The agent only shows what a status page says. */
static void test_garbage_status(void **state)
{
	(void)state;
	struct fake fake = fake_join(1);
	memset(fake.status, 0xa5, WEIR_PAGE_SIZE);
	char *text = rig_status();
	assert_non_null(strstr(text, "\"launches\":0"));
	free(text);
	fake_leave(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_bad_messages),   AGENT_TEST(test_unknown_type),
		AGENT_TEST(test_unknown_gpu),    AGENT_TEST(test_unknown_gpus_are_limited),
		AGENT_TEST(test_limits),         AGENT_TEST(test_no_room_for_pages),
		AGENT_TEST(test_unseen_process), AGENT_TEST(test_silent),
		AGENT_TEST(test_garbage_status),
	};

	return RUN_AGENT_TESTS(tests);
}
