/* The life of clients: welcome, change of level, death, sharing of bits, restart of the agent. */
#include "agent-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/session.h"

static void test_welcome(void **state)
{
	(void)state;
	struct fake low = fake_join(0), high = fake_join(2);
	assert_int_equal(low.level, 0);
	assert_int_equal(high.level, 2);
	assert_int_equal(low.control->magic, WEIR_PROTOCOL_MAGIC);
	assert_int_equal(low.control->level, 0);
	assert_int_equal(low.control->above, 1);
	assert_int_equal(high.control->above, 0);
	assert_int_not_equal(low.bit, high.bit);
	fake_demand(&high);
	assert_true(atomic_load(&low.wait->word) == 1ull << high.bit);
	assert_true(atomic_load(&high.wait->word) == 0);
	fake_leave(&high);
	assert_true(atomic_load(&low.wait->word) == 0);
	assert_int_equal(low.control->above, 0);
	fake_leave(&low);
	assert_int_equal(agent.sessions.n, 0);
}

static void test_reading_is_not_writing(void **state)
{
	char path[64];

	(void)state;
	struct fake low = fake_join(0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", low.wait_fd);
	if (agent.gpus.root.readonly < 0)
		skip();
	assert_int_equal(open(path, O_RDWR), -1);
	fake_leave(&low);
}

/* Raises all of a tenant's clients, then lowers them. */
static void test_level_changes_live(void **state)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	struct fake other = fake_join(1), fake = fake_join(0);
	agent.config.levels.by_default = 3;
	sessions_decide(&agent.sessions, agent.tenants.all->hh.next);
	assert_int_equal(fake_receive(fake.fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_LEVEL);
	assert_int_equal(message.level.level, 3);
	fake_take_level(&fake, 3, fds);
	assert_int_equal(fake.control->level, 3);
	assert_int_equal(other.control->above, 1);
	fake_demand(&fake);
	assert_true(atomic_load(&other.wait->word) == 1ull << fake.bit);

	agent.config.levels.by_default = 0;
	sessions_decide(&agent.sessions, agent.tenants.all->hh.next);
	assert_int_equal(fake_receive(fake.fd, &message, fds), 0);
	assert_int_equal(message.level.level, 0);
	gpu_sweep(agent.gpus.all, loop_now() + GPU_GRACE_NS);
	assert_true(atomic_load(&other.wait->word) == 0);
	assert_int_equal(other.control->above, 0);
	assert_int_equal(fake.control->above, 1);
	fake_leave(&fake);
	fake_leave(&other);
}

/* It needed none before. */
static void test_raised_client_hears_of_its_bit(void **state)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	hello.flags = WEIR_HELLO_TAKES_BIT;
	next_identity.uid = 0;
	assert_int_equal(weir_message_send(fake.fd, &hello, sizeof(hello), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	assert_int_equal(fake.bit, WEIR_BIT_SHARED);
	agent.config.levels.by_default = 2;
	sessions_decide(&agent.sessions, agent.tenants.all);
	assert_int_equal(fake_receive(fake.fd, &message, fds), 0);
	fake_take_level(&fake, message.level.level, fds);
	assert_int_equal(message.level.bit, 1 + 0);
	fake.bit = 0;
	struct fake low = fake_join(1);
	fake_demand(&fake);
	assert_true(atomic_load(&low.wait->word) == 1);
	agent.config.levels.by_default = 0;
	fake_leave(&fake);
	fake_leave(&low);
}

/* A client that does not read its messages is cut off, and nobody waits for it. */
static void test_deaf_client(void **state)
{
	(void)state;
	struct fake fake = fake_join(0);
	for (int i = 0; i < 10000 && agent.sessions.n; i++) {
		agent.config.levels.by_default = (uint8_t)(1 + i % 2);
		sessions_decide(&agent.sessions, agent.tenants.all);
		rig_pump();
	}
	assert_int_equal(agent.sessions.n, 0);
	close(fake.fd);
}

static void run_child(int ready)
{
	struct weir_hello message = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};
	union weir_message answer;
	int fds[WEIR_FDS_MAX];

	weir_message_send(fake.fd, &message, sizeof(message), NULL, 0);
	while (fake_receive(fake.fd, &answer, fds) == -EAGAIN)
		usleep(1000);
	fake.bit = answer.welcome.bit;
	close(fds[0]);
	fake_take_level(&fake, answer.welcome.level, fds + 2);
	fake_demand(&fake);
	/* Holds the socket open after its parent's death. */
	if (fork() == 0) {
		close(ready);
		pause();
	}
	if (write(ready, "r", 1) == 1)
		pause();
	_exit(1);
}

static void test_killed(void **state)
{
	int ready[2];
	char byte;

	(void)state;
	struct fake low = fake_join(0);
	assert_int_equal(pipe(ready), 0);
	next_identity.uid = 3;
	pid_t child = fork();
	if (child == 0) {
		setpgid(0, 0);
		close(low.fd);
		run_child(ready[1]);
	}
	setpgid(child, child);
	fcntl(ready[0], F_SETFL, O_NONBLOCK);
	rig_wait(read(ready[0], &byte, 1) == 1);
	assert_true(atomic_load(&low.wait->word) != 0);
	assert_int_equal(low.control->above, 1);

	/* Its process has died, though a child still has the socket. */
	kill(child, SIGKILL);
	rig_wait(agent.sessions.n == 1);
	assert_true(atomic_load(&low.wait->word) == 0);
	assert_int_equal(low.control->above, 0);
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
	fake_leave(&low);
	close(ready[0]);
	close(ready[1]);
}

static void test_many_share(void **state)
{
	struct fake fakes[70];

	(void)state;
	struct fake low = fake_join(0);
	for (size_t i = 0; i < countof(fakes); i++)
		fakes[i] = fake_join(2);
	assert_int_equal(fakes[31].bit, 31);
	assert_int_equal(fakes[32].bit, WEIR_BIT_SHARED);
	assert_int_equal(fakes[69].bit, WEIR_BIT_SHARED);
	assert_int_equal(low.control->above, 70);
	atomic_store(&fakes[66].status->level, 2);
	atomic_store(&fakes[66].status->outstanding, 1);
	rig_wait(atomic_load(&low.wait->word) == 1ull << WEIR_BIT_SHARED);
	atomic_store(&fakes[66].status->outstanding, 0);
	rig_wait(atomic_load(&low.wait->word) == 0);
	for (size_t i = 0; i < countof(fakes); i++)
		close(fakes[i].fd);
	rig_pump();
	assert_int_equal(agent.sessions.n, 1);
	fake_leave(&low);
	/* After the last of them the agent stops looking. */
	struct itimerspec look;
	assert_int_equal(timerfd_gettime(agent.gpus.all->sharing.io.fd, &look), 0);
	assert_int_equal(look.it_value.tv_sec + look.it_value.tv_nsec, 0);
}

static void test_restart(void **state)
{
	(void)state;
	struct fake low = fake_join(0), a = fake_join(2), b = fake_join(2);
	fake_demand(&a);
	fake_demand(&b);
	agent_deinit(&agent);
	/* Clients that run keep their pages and bits. */
	assert_true(atomic_load(&low.wait->word) == (1ull << a.bit | 1ull << b.bit));

	rig_start(true);
	struct fake again = fake_join_claiming(2, b.bit), fresh = fake_join(2);
	assert_int_equal(again.bit, b.bit);
	assert_int_not_equal(fresh.bit, a.bit);
	gpu_sweep(agent.gpus.all, loop_now() + GPU_GRACE_NS);
	assert_true(atomic_load(&low.wait->word) == 1ull << b.bit);
	fake_leave(&again);
	fake_leave(&fresh);
	close(low.fd);
	close(a.fd);
	close(b.fd);
}

/* An agent whose start takes long waits for claims from the moment at which clients can connect. */
static void test_slow_restart(void **state)
{
	(void)state;
	struct fake fake = fake_join(2);
	agent_deinit(&agent);
	rig_delay = 50000;
	rig_start(false);
	rig_delay = 0;
	assert_true(agent.gpus.all->reserved & 1ull << fake.bit);
	assert_true(agent.gpus.all->reserved_until >= rig_delayed + GPU_GRACE_NS);
	close(fake.fd);
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void leave_wholly(struct fake *fake)
{
	fake_leave(fake);
	if (fake->wait_fd >= 0)
		close(fake->wait_fd);
	munmap(fake->control, WEIR_PAGE_SIZE);
	munmap(fake->status, WEIR_PAGE_SIZE);
	munmap(fake->wait, WEIR_PAGE_SIZE);
}

static void test_nothing_grows(void **state)
{
	(void)state;
	struct fake fake = fake_join(0);
	leave_wholly(&fake);
	unsigned before = count_open();
	for (int i = 0; i < 1000; i++) {
		fake = fake_join(0);
		leave_wholly(&fake);
	}
	assert_int_equal(count_open(), before);
	assert_int_equal(HASH_COUNT(agent.tenants.all), 1);
	assert_int_equal(agent.gpus.all->bits, 0);
	assert_int_equal(agent.sessions.n, 0);
}

/* A client from before the restart, whose pod the new agent does not know yet. */
static struct fake claims_after_a_restart(void)
{
	agent_deinit(&agent);
	rig_start(false);
	next_identity = (struct container_identity){
		.in_pod = true, .pod_uid = "u-1", .cgroup = "/kubepods"};
	return fake_claim(0, 5);
}

/* A client from before the restart is welcomed when its pod is known, or soon if there is no API
 * server. It never hears another level in between. */
static void test_level_is_waited_for_after_a_restart(void **state)
{
	struct fake fake = claims_after_a_restart();

	(void)state;
	assert_null(agent.gpus.all);
	known_pod = rig_pod("trusted", "critical");
	tell_changed(&agent);
	fake_welcome(&fake);
	assert_int_equal(fake.level, 3);
	assert_int_equal(fake.bit, 5);
	fake_leave(&fake);
	free(known_pod);
	known_pod = NULL;

	agent_deinit(&agent);
	rig_start(false);
	uint64_t began = loop_now();
	fake = fake_claim(0, 5);
	rig_wait(agent.gpus.all && agent.gpus.all->clients);
	assert_true(loop_now() - began >= SESSION_LEVEL_NS);
	fake_welcome(&fake);
	assert_int_equal(fake.level, 0);
	fake_leave(&fake);
}

/* A client that hangs up while its HELLO waits, with another HELLO behind it, is not welcomed. */
static void test_second_hello_while_the_first_waits(void **state)
{
	struct weir_hello again = fake_hello(WEIR_BIT_NONE);
	struct fake fake = claims_after_a_restart();

	(void)state;
	assert_int_equal(agent.sessions.n, 1);
	assert_int_equal(weir_message_send(fake.fd, &again, sizeof(again), NULL, 0), 0);
	fake_leave(&fake);
	assert_int_equal(agent.sessions.n, 0);
	assert_int_equal(agent.sessions.clients.last_number, 0);
}

/* A second agent does not start, and the first one stays. */
static void test_second_agent(void **state)
{
	struct server server;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/agent.sock", rig_folder);
	assert_int_equal(server_init(&server, &agent.loop, path, SOCK_SEQPACKET, 0666, NULL),
			 -EADDRINUSE);
	server_deinit(&server);
	struct fake fake = fake_join(1);
	fake_leave(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_welcome),
		AGENT_TEST(test_reading_is_not_writing),
		AGENT_TEST(test_level_changes_live),
		AGENT_TEST(test_raised_client_hears_of_its_bit),
		AGENT_TEST(test_deaf_client),
		AGENT_TEST(test_killed),
		AGENT_TEST(test_many_share),
		AGENT_TEST(test_restart),
		AGENT_TEST(test_slow_restart),
		AGENT_TEST(test_nothing_grows),
		AGENT_TEST(test_level_is_waited_for_after_a_restart),
		AGENT_TEST(test_second_hello_while_the_first_waits),
		AGENT_TEST(test_second_agent),
	};

	return RUN_AGENT_TESTS(tests);
}
