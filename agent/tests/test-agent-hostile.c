/* Hostile and broken clients are refused with a reason, and the agent leaks nothing. */
#include "agent-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/session.h"
#include "daemon/control/commands.h"

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

/* Descriptors that are no control device. The client stays, and the agent keeps none of them. */
static void test_bad_channels(void **state)
{
	struct weir_channels message = {.group = {1, 2, 3, 1, {4}}};
	struct fake fake = fake_join(1);
	int bad[] = {open("/dev/null", O_RDWR), open("/dev/zero", O_PATH), eventfd(0, 0),
		     fake_connect()};

	(void)state;
	weir_header_init(&message.header, WEIR_CHANNELS, sizeof(message));
	for (size_t i = 0; i < countof(bad); i++) {
		assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), &bad[i], 1),
				 0);
		rig_pump();
		close(bad[i]);
	}
	char *status = rig_status();
	assert_non_null(strstr(status, "\"hardwarePreemption\":false"));
	free(status);
	message.group.n_channels = CHANNEL_GROUP_CHANNELS + 1;
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), &fake.fd, 1), 0);
	rig_pump();
	expect_refused(fake.fd, WEIR_REFUSED_MESSAGE);
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

/* A container of the lowest level, with as many clients as it may have, and one of level normal. */
static void test_low_takes_no_bits(void **state)
{
	static char answer[32768];
	struct fake lows[80], normals[9];

	(void)state;
	for (int i = 0; i < 80; i++) {
		lows[i] = fake_join_claiming(0, (uint8_t)(i % WEIR_BITS_OWN));
		assert_int_equal(lows[i].bit, WEIR_BIT_SHARED);
	}
	for (int i = 0; i < 9; i++) {
		normals[i] = fake_join(1);
		assert_true(normals[i].bit < WEIR_BITS_OWN);
	}
	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\nweir_demand_slots_refused_total{gpu=\"GPU-"));
	assert_true(agent.gpus.all->bits_refused == 0);
	for (int i = 0; i < 9; i++)
		fake_leave(&normals[i]);
	/* Another container takes all that it can get. */
	for (int i = 0; i < 70; i++) {
		fake_leave(&lows[i]);
		lows[i] = fake_join(1);
	}
	assert_true(agent.gpus.all->bits_refused > 0);
	struct fake high = fake_join(2);
	assert_true(high.bit < WEIR_BITS_OWN);
	fake_leave(&high);
	for (int i = 0; i < 80; i++)
		fake_leave(&lows[i]);
}

/* Until it hears of its level. */
static void expect_level(struct fake *fake, uint8_t level)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	while (fake_receive(fake->fd, &message, fds) == -EAGAIN)
		assert_true(loop_step(&agent.loop, -1) >= 0);
	assert_int_equal(message.header.type, WEIR_LEVEL);
	assert_int_equal(message.level.level, level);
	fake_take_level(fake, level, fds);
}

static _Atomic uint64_t *low_word(const struct fake *low)
{
	return &low->wait->word;
}

/* A client of level normal sets the bit of an idle client above it, and of nobody, and dies. */
static void test_forged_demand_ends(void **state)
{
	struct fake high = fake_join(2), low = fake_join(0), forger = fake_join(1);
	uint64_t own = 1ull << high.bit;

	(void)state;
	atomic_fetch_or(&forger.below[0]->word, own | 1ull << 40);
	assert_true(atomic_load(low_word(&low)) == (own | 1ull << 40));
	fake_leave(&forger);
	assert_true(atomic_load(low_word(&low)) == own); /* the agent sees nobody's bit at once */
	expect_level(&high, 2);
	assert_true(atomic_load(low_word(&low)) == 0);

	/* Nothing is lost: a client with work keeps its bit. */
	forger = fake_join(1);
	atomic_store(&high.status->outstanding, 1);
	fake_demand(&high);
	fake_leave(&forger);
	for (unsigned i = 1; i <= 4; i++)
		gpu_sweep(agent.gpus.all, loop_now() + i * GPU_GRACE_NS);
	assert_true(atomic_load(low_word(&low)) == own);
	fake_leave(&high);
	fake_leave(&low);
}

/* A pod that is lowered keeps what it has mapped. */
static void test_lowered_has_no_power(void **state)
{
	struct fake low = fake_join(0), other = fake_join(2), normal = fake_join(1);
	struct tenant *tenant = agent.tenants.all;

	(void)state;
	agent.config.levels.by_default = 2;
	sessions_decide(&agent.sessions, tenant);
	expect_level(&low, 2);
	struct fake lowered = low;
	fake_demand(&lowered);
	fake_demand(&other);
	atomic_store(&other.status->outstanding, 1);
	agent.config.levels.by_default = 0;
	sessions_decide(&agent.sessions, tenant);
	expect_level(&low, 0);
	expect_level(&normal, 1);
	expect_level(&other, 2);
	/* What its superiors show has gone to the new pages. */
	assert_true(atomic_load(&normal.wait->word) == 1ull << other.bit);
	assert_true(atomic_load(low_word(&low)) == 1ull << other.bit);
	for (int level = 0; level < 2; level++) {
		assert_ptr_not_equal(lowered.below[level], other.below[level]);
		atomic_store(&lowered.below[level]->word, UINT64_MAX);
	}
	assert_true(atomic_load(&normal.wait->word) == 1ull << other.bit);
	assert_true(atomic_load(low_word(&low)) == 1ull << other.bit);
	/* Gates that waited for the former pages open. */
	gpu_sweep(agent.gpus.all, loop_now());
	assert_true(atomic_load(&lowered.below[1]->word) == 0);

	/* It has no connection while it is lowered. */
	agent.config.levels.by_default = 1;
	sessions_decide(&agent.sessions, tenant);
	expect_level(&low, 1);
	lowered = low;
	fake_leave(&low);
	agent.config.levels.by_default = 0;
	sessions_decide(&agent.sessions, tenant);
	low = fake_join(0);
	atomic_store(&lowered.below[0]->word, UINT64_MAX);
	assert_true(atomic_load(low_word(&low)) == 1ull << other.bit);
	fake_leave(&other);
	fake_leave(&normal);
	fake_leave(&low);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_bad_messages),
		AGENT_TEST(test_unknown_type),
		AGENT_TEST(test_unknown_gpu),
		AGENT_TEST(test_unknown_gpus_are_limited),
		AGENT_TEST(test_bad_channels),
		AGENT_TEST(test_limits),
		AGENT_TEST(test_no_room_for_pages),
		AGENT_TEST(test_unseen_process),
		AGENT_TEST(test_silent),
		AGENT_TEST(test_garbage_status),
		AGENT_TEST(test_low_takes_no_bits),
		AGENT_TEST(test_forged_demand_ends),
		AGENT_TEST(test_lowered_has_no_power),
	};

	return RUN_AGENT_TESTS(tests);
}
