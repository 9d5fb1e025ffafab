/* A whole agent in this process, and clients that speak the protocol: connected, welcomed, lowered,
 * killed, many, and there again after the agent's restart.
 *
 * Who a client is, and what the API server knows of its pod, says the test (the linker puts its
 * functions in the place of the real ones). */
#include "../agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../commands.h"
#include "../http.h"
#include "../session.h"
#include "../status.h"
#include "compile-fixture.h"

#include "weir/base.h"
#include "weir/protocol.h"

static struct agent agent;
static char folder[] = "/tmp/weir-test-XXXXXX";
static struct container_identity next_identity;
static struct pod *known_pod;
static int identify_error;
static pods_changed_fn *tell_changed;

int __wrap_container_identify(struct container_identity *out, pid_t pid);
int __wrap_container_identify(struct container_identity *out, pid_t pid)
{
	*out = next_identity;
	out->pid = pid;
	return identify_error;
}

int __wrap_pods_new(struct pods **out, struct loop *loop, const struct config_kubernetes *config,
		    pods_changed_fn *changed, void *userdata);
int __wrap_pods_new(struct pods **out, struct loop *loop, const struct config_kubernetes *config,
		    pods_changed_fn *changed, void *userdata)
{
	(void)loop, (void)config, (void)userdata;
	tell_changed = changed;
	*out = (struct pods *)&known_pod;
	return 0;
}

void __wrap_pods_free(struct pods *pods);
void __wrap_pods_free(struct pods *pods)
{
	(void)pods;
}

const struct pod *__wrap_pods_find(struct pods *pods, const char *uid);
const struct pod *__wrap_pods_find(struct pods *pods, const char *uid)
{
	(void)pods;
	return known_pod && strcmp(known_pod->uid, uid) == 0 ? known_pod : NULL;
}

bool __wrap_pods_connected(const struct pods *pods);
bool __wrap_pods_connected(const struct pods *pods)
{
	(void)pods;
	return known_pod != NULL;
}

static void start(bool standalone)
{
	struct config config;
	char text[2048], message[256];

	snprintf(text, sizeof(text),
		 "socket: %s/agent.sock\nstateDir: %s/state\ncontrol: {socket: %s/control.sock}\n"
		 "metrics: {address: '127.0.0.1:0'}\nnvml: /nowhere\nlogLevel: error\n"
		 "kubernetes: {enabled: true}\nlimits: {clients: 90, clientsPerContainer: 80}\n"
		 "levels: {raiseNamespaces: [trusted]}\n"
		 "standalone: {rules: [{uid: 1, level: normal}, {uid: 2, level: high}, "
		 "{uid: 3, level: critical}]}\ncompile: {mode: ptx, program: %s}\n",
		 folder, folder, folder, fixture_program());
	log_set_level(LOG_ERROR);
	assert_int_equal(
		config_parse(&config, "test", text, strlen(text), message, sizeof(message)), 0);
	assert_int_equal(agent_init(&agent, &config, standalone), 0);
}

/* Everything that is ready, and what becomes ready by it. */
static void pump(void)
{
	while (loop_step(&agent.loop, 0) > 0)
		;
}

static int set_up(void **state)
{
	(void)state;
	identify_error = 0;
	next_identity = (struct container_identity){.cgroup = "/"};
	known_pod = NULL;
	start(true);
	return 0;
}

static void remove_state(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/state", folder);
	assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
	(void)state;
	agent_deinit(&agent);
	remove_state();
	return 0;
}

/* A client as libweir is one. */
struct fake {
	int fd;
	uint8_t level, bit;
	struct weir_control_page *control;
	struct weir_status_page *status;
	struct weir_demand_page *wait, *below[WEIR_DEMAND_LEVELS];
	int wait_fd;
};

static int fake_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent.sock", folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static struct weir_hello hello(uint8_t claim)
{
	struct weir_hello message = {.gpu = "0123456789abcde", .claimed_bit = claim};

	weir_header_init(&message.header, WEIR_HELLO, sizeof(message));
	snprintf(message.library, sizeof(message.library), "%s", "test");
	return message;
}

static void *map(int fd, int protection)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void take_level(struct fake *fake, uint8_t level, const int *fds)
{
	fake->level = level;
	fake->wait = NULL;
	fake->wait_fd = -1;
	if (level < WEIR_DEMAND_LEVELS) {
		fake->wait_fd = *fds;
		fake->wait = map(*fds++, PROT_READ);
	}
	for (int below = 0; below < level; below++)
		fake->below[below] = map(*fds++, PROT_READ | PROT_WRITE);
}

static int receive(int fd, union weir_message *message, int *fds)
{
	size_t n;

	return weir_message_receive(fd, message, fds, &n);
}

static void finish(struct fake *fake)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	assert_int_equal(receive(fake->fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_WELCOME);
	fake->bit = message.welcome.bit;
	fake->control = map(fds[0], PROT_READ | PROT_WRITE);
	fake->status = map(fds[1], PROT_READ | PROT_WRITE);
	close(fds[0]);
	close(fds[1]);
	take_level(fake, message.welcome.level, fds + 2);
}

static struct fake join_claiming(uid_t uid, uint8_t claim)
{
	struct weir_hello message = hello(claim);
	struct fake fake = {.fd = fake_connect()};

	next_identity.uid = uid;
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
	pump();
	finish(&fake);
	return fake;
}

static struct fake join(uid_t uid)
{
	return join_claiming(uid, WEIR_BIT_NONE);
}

static void leave(struct fake *fake)
{
	close(fake->fd);
	pump();
}

static void demand(const struct fake *fake)
{
	for (int below = 0; below < fake->level; below++)
		atomic_fetch_or(&fake->below[below]->word, 1ull << fake->bit);
}

static void test_welcome(void **state)
{
	(void)state;
	struct fake low = join(0), high = join(2);
	assert_int_equal(low.level, 0);
	assert_int_equal(high.level, 2);
	assert_int_equal(low.control->magic, WEIR_PROTOCOL_MAGIC);
	assert_int_equal(low.control->level, 0);
	assert_int_equal(low.control->above, 1);
	assert_int_equal(high.control->above, 0);
	assert_int_not_equal(low.bit, high.bit);
	demand(&high);
	assert_true(atomic_load(&low.wait->word) == 1ull << high.bit);
	assert_true(atomic_load(&high.wait->word) == 0);
	leave(&high);
	assert_true(atomic_load(&low.wait->word) == 0);
	assert_int_equal(low.control->above, 0);
	leave(&low);
	assert_int_equal(agent.n_sessions, 0);
}

static void test_reading_is_not_writing(void **state)
{
	char path[64];

	(void)state;
	struct fake low = join(0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", low.wait_fd);
	if (agent.gpus.root.readonly < 0)
		skip();
	assert_int_equal(open(path, O_RDWR), -1);
	leave(&low);
}

/* Raises all of a tenant's clients, then lowers them. */
static void test_level_changes_live(void **state)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	struct fake other = join(1), fake = join(0);
	agent.config.levels.by_default = 3;
	agent_decide(&agent, agent.tenants.all->hh.next);
	assert_int_equal(receive(fake.fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_LEVEL);
	assert_int_equal(message.level.level, 3);
	take_level(&fake, 3, fds);
	assert_int_equal(fake.control->level, 3);
	assert_int_equal(other.control->above, 1);
	demand(&fake);
	assert_true(atomic_load(&other.wait->word) == 1ull << fake.bit);

	agent.config.levels.by_default = 0;
	agent_decide(&agent, agent.tenants.all->hh.next);
	assert_int_equal(receive(fake.fd, &message, fds), 0);
	assert_int_equal(message.level.level, 0);
	gpu_sweep(agent.gpus.all, loop_now() + GPU_GRACE_NS);
	assert_true(atomic_load(&other.wait->word) == 0);
	assert_int_equal(other.control->above, 0);
	assert_int_equal(fake.control->above, 1);
	leave(&fake);
	leave(&other);
}

/* One that does not read its messages is cut off, and nobody waits for it. */
static void test_deaf_client(void **state)
{
	(void)state;
	struct fake fake = join(0);
	for (int i = 0; i < 10000 && agent.n_sessions; i++) {
		agent.config.levels.by_default = (uint8_t)(1 + i % 2);
		agent_decide(&agent, agent.tenants.all);
		pump();
	}
	assert_int_equal(agent.n_sessions, 0);
	close(fake.fd);
}

static void run_child(int ready)
{
	struct weir_hello message = hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};
	union weir_message answer;
	int fds[WEIR_FDS_MAX];

	weir_message_send(fake.fd, &message, sizeof(message), NULL, 0);
	while (receive(fake.fd, &answer, fds) == -EAGAIN)
		usleep(1000);
	fake.bit = answer.welcome.bit;
	close(fds[0]);
	take_level(&fake, answer.welcome.level, fds + 2);
	demand(&fake);
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
	struct fake low = join(0);
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
	while (read(ready[0], &byte, 1) != 1)
		assert_true(loop_step(&agent.loop, 10) >= 0);
	assert_true(atomic_load(&low.wait->word) != 0);
	assert_int_equal(low.control->above, 1);

	/* The process, not its own child, which still has the socket. */
	kill(child, SIGKILL);
	while (agent.n_sessions > 1)
		assert_true(loop_step(&agent.loop, -1) >= 0);
	assert_true(atomic_load(&low.wait->word) == 0);
	assert_int_equal(low.control->above, 0);
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
	leave(&low);
	close(ready[0]);
	close(ready[1]);
}

static void test_many_share(void **state)
{
	struct fake fakes[70];

	(void)state;
	struct fake low = join(0);
	for (size_t i = 0; i < countof(fakes); i++)
		fakes[i] = join(2);
	assert_int_equal(fakes[61].bit, 62);
	assert_int_equal(fakes[62].bit, WEIR_BIT_SHARED);
	assert_int_equal(fakes[69].bit, WEIR_BIT_SHARED);
	assert_int_equal(low.control->above, 70);
	atomic_store(&fakes[66].status->outstanding, 1);
	while (atomic_load(&low.wait->word) != 1ull << WEIR_BIT_SHARED)
		assert_true(loop_step(&agent.loop, -1) >= 0);
	atomic_store(&fakes[66].status->outstanding, 0);
	while (atomic_load(&low.wait->word) != 0)
		assert_true(loop_step(&agent.loop, -1) >= 0);
	for (size_t i = 0; i < countof(fakes); i++)
		close(fakes[i].fd);
	pump();
	assert_int_equal(agent.n_sessions, 1);
	leave(&low);
	/* With the last of them, the agent stops looking. */
	assert_int_equal(loop_step(&agent.loop, 5), 0);
}

static void test_restart(void **state)
{
	(void)state;
	struct fake low = join(0), a = join(2), b = join(2);
	demand(&a);
	demand(&b);
	agent_deinit(&agent);
	/* Nothing changes for those who run. */
	assert_true(atomic_load(&low.wait->word) == (1ull << a.bit | 1ull << b.bit));

	start(true);
	struct fake again = join_claiming(2, b.bit), fresh = join(2);
	assert_int_equal(again.bit, b.bit);
	assert_int_not_equal(fresh.bit, a.bit);
	gpu_sweep(agent.gpus.all, loop_now() + GPU_GRACE_NS);
	assert_true(atomic_load(&low.wait->word) == 1ull << b.bit);
	leave(&again);
	leave(&fresh);
	close(low.fd);
	close(a.fd);
	close(b.fd);
}

static void expect_refused(int fd, enum weir_refusal reason)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	pump();
	assert_int_equal(receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_REFUSED);
	assert_int_equal(message.refused.reason, reason);
	assert_true(strlen(message.refused.text) > 0);
	assert_true(receive(fd, &message, fds) < 0);
	close(fd);
	assert_int_equal(agent.n_sessions, 0);
}

static void expect_bad(const void *packet, size_t size, enum weir_refusal reason)
{
	int fd = fake_connect();

	assert_int_equal(send(fd, packet, size, 0), size);
	expect_refused(fd, reason);
}

static void test_bad_messages(void **state)
{
	uint8_t large[WEIR_MESSAGE_MAX + 1] = {0};
	struct weir_hello message;

	(void)state;
	message = hello(WEIR_BIT_NONE);
	message.header.version = 0;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_VERSION);
	message = hello(WEIR_BIT_NONE);
	expect_bad(&message, 20, WEIR_REFUSED_MESSAGE);
	expect_bad("x", 1, WEIR_REFUSED_MESSAGE);
	expect_bad(large, sizeof(large), WEIR_REFUSED_MESSAGE);
	message = hello(64);
	expect_bad(&message, sizeof(message), WEIR_REFUSED_MESSAGE);
	message = hello(WEIR_BIT_NONE);
	message.header.type = WEIR_LEVEL;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_MESSAGE);
	assert_true(agent.refused[WEIR_REFUSED_MESSAGE] == 5);
	assert_true(agent.refused[WEIR_REFUSED_VERSION] == 1);
}

/* A later library's message is no offence, before and after the hello. */
static void test_unknown_type(void **state)
{
	struct weir_hello message = hello(WEIR_BIT_NONE), odd = message;
	struct fake fake = {.fd = fake_connect()};

	(void)state;
	odd.header.type = 77;
	assert_int_equal(weir_message_send(fake.fd, &odd, sizeof(odd), NULL, 0), 0);
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
	assert_int_equal(weir_message_send(fake.fd, &odd, sizeof(odd), NULL, 0), 0);
	pump();
	finish(&fake);
	assert_int_equal(agent.n_sessions, 1);
	leave(&fake);
}

/* NVML lists GPUs, and this one is not among them. */
static void test_unknown_gpu(void **state)
{
	struct weir_hello message = hello(WEIR_BIT_NONE);

	(void)state;
	agent.gpus.listed = true;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_GPU);
}

static void test_unknown_gpus_are_limited(void **state)
{
	(void)state;
	for (int i = 0; i <= GPUS_MAX; i++) {
		struct weir_hello message = hello(WEIR_BIT_NONE);
		struct fake fake = {.fd = fake_connect()};

		message.gpu[3] = (uint8_t)i;
		assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
		if (i == GPUS_MAX) {
			expect_refused(fake.fd, WEIR_REFUSED_GPU);
			break;
		}
		pump();
		finish(&fake);
		leave(&fake);
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
		fakes[i] = join(1);
	int fd = fake_connect();
	pump();
	assert_int_equal(receive(fd, &message, fds), 0);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	close(fd);
	for (int i = 80; i < 90; i++)
		fakes[i] = join(2);
	fd = fake_connect();
	pump();
	assert_int_equal(receive(fd, &message, fds), 0);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	close(fd);
	for (int i = 0; i < 90; i++)
		close(fakes[i].fd);
	pump();
	assert_int_equal(agent.n_sessions, 0);
}

/* As with a full disk: refused, and welcome once there is room. */
static void test_no_room_for_pages(void **state)
{
	struct weir_hello message = hello(WEIR_BIT_NONE);
	int dir = agent.gpus.root.dir;

	(void)state;
	agent.gpus.root.dir = -1;
	expect_bad(&message, sizeof(message), WEIR_REFUSED_INTERNAL);
	agent.gpus.root.dir = dir;
	struct fake fake = join(1);
	leave(&fake);
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
	leave(fake);
	if (fake->wait_fd >= 0)
		close(fake->wait_fd);
	munmap(fake->control, WEIR_PAGE_SIZE);
	munmap(fake->status, WEIR_PAGE_SIZE);
	munmap(fake->wait, WEIR_PAGE_SIZE);
}

static void test_nothing_grows(void **state)
{
	(void)state;
	struct fake fake = join(0);
	leave_wholly(&fake);
	unsigned before = count_open();
	for (int i = 0; i < 1000; i++) {
		fake = join(0);
		leave_wholly(&fake);
	}
	assert_int_equal(count_open(), before);
	assert_int_equal(HASH_COUNT(agent.tenants.all), 1);
	assert_int_equal(agent.gpus.all->bits, 0);
	assert_int_equal(agent.n_sessions, 0);
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
	pump();
	assert_int_equal(agent.n_sessions, 1);
	while (agent.n_sessions)
		assert_true(loop_step(&agent.loop, -1) >= 0);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
}

/* Whatever a status page says, it is only shown. */
static void test_garbage_status(void **state)
{
	(void)state;
	struct fake fake = join(1);
	memset(fake.status, 0xa5, WEIR_PAGE_SIZE);
	char *text = status_print(&agent);
	assert_non_null(strstr(text, "\"launches\":0"));
	free(text);
	leave(&fake);
}

static struct pod *make_pod(const char *namespace_, const char *priority)
{
	struct pod *pod = calloc(1, sizeof(*pod) + sizeof(pod->containers[0]));

	snprintf(pod->uid, sizeof(pod->uid), "%s", "u-1");
	snprintf(pod->namespace_, sizeof(pod->namespace_), "%s", namespace_);
	snprintf(pod->name, sizeof(pod->name), "%s", "web");
	snprintf(pod->priority, sizeof(pod->priority), "%s", priority);
	pod->qos = CONTAINER_QOS_BURSTABLE;
	pod->n_containers = 1;
	snprintf(pod->containers[0].id, sizeof(pod->containers[0].id), "%s", "c0ffee");
	snprintf(pod->containers[0].name, sizeof(pod->containers[0].name), "%s", "main");
	return pod;
}

static void expect_level(struct fake *fake, uint8_t level)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	pump();
	assert_int_equal(receive(fake->fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_LEVEL);
	assert_int_equal(message.level.level, level);
	take_level(fake, level, fds);
}

/* By QoS class until the API server tells more; then as the annotation says, at once. */
static void test_pod(void **state)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	agent_deinit(&agent);
	start(false);
	next_identity = (struct container_identity){
		.in_pod = true,
		.qos = CONTAINER_QOS_BURSTABLE,
		.pod_uid = "u-1",
		.container_id = "c0ffee",
		.cgroup = "/kubepods",
	};
	struct fake fake = join(0);
	assert_int_equal(fake.level, 1);
	assert_string_equal(agent.tenants.all->pod, "u-1");

	known_pod = make_pod("trusted", "critical");
	tell_changed(&agent);
	expect_level(&fake, 3);
	assert_string_equal(agent.tenants.all->pod, "web");
	assert_string_equal(agent.tenants.all->container, "main");

	snprintf(known_pod->priority, sizeof(known_pod->priority), "%s", "low");
	tell_changed(&agent);
	expect_level(&fake, 0);

	/* Its share of the GPU, and what latency it wants, where that makes sense. */
	known_pod->containers[0].share = 40;
	snprintf(known_pod->latency_slo, sizeof(known_pod->latency_slo), "%s", "5ms");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 40);
	assert_int_equal(fake.control->latency_slo, 5000000);
	snprintf(known_pod->latency_slo, sizeof(known_pod->latency_slo), "%s", "soon");
	tell_changed(&agent);
	assert_int_equal(fake.control->latency_slo, 0);
	cleanup(freep) char *status = status_print(&agent);
	assert_non_null(strstr(status, "\"latencySloRefused\":\"soon\""));

	/* May lower itself anywhere, but raise itself only where that is allowed. */
	snprintf(known_pod->namespace_, sizeof(known_pod->namespace_), "%s", "other");
	snprintf(known_pod->priority, sizeof(known_pod->priority), "%s", "high");
	tell_changed(&agent);
	expect_level(&fake, 1);
	tell_changed(&agent);
	pump();
	assert_int_equal(receive(fake.fd, &message, fds), -EAGAIN);

	/* Gone with its pod. */
	leave(&fake);
	snprintf(known_pod->uid, sizeof(known_pod->uid), "%s", "u-2");
	tell_changed(&agent);
	assert_null(agent.tenants.all);
	free(known_pod);
	known_pod = NULL;
}

static void fetch(const char *path, char *answer, size_t size)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(http_port(agent.http)),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[128];
	size_t at = 0;

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		assert_true(loop_step(&agent.loop, 10) >= 0);
		ssize_t n = recv(fd, answer + at, size - at - 1, 0);
		if (n == 0)
			break;
		if (n > 0)
			at += (size_t)n;
	}
	answer[at] = '\0';
	close(fd);
}

static void test_http(void **state)
{
	static char answer[32768];

	(void)state;
	struct fake fake = join(2);
	atomic_store(&fake.status->launches, 12);
	fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	assert_non_null(strstr(answer, "version=0.0.4"));
	assert_non_null(strstr(answer,
			       "weir_launches_total{namespace=\"\",pod=\"\",container=\"uid "
			       "2 /\",gpu=\"GPU-30313233-3435-3637-3839-616263646500\"} 12\n"));
	assert_non_null(strstr(answer, "level=\"high\"} 1\n"));
	fetch("/healthz", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	fetch("/readyz", answer, sizeof(answer));
	assert_non_null(strstr(answer, "200 OK"));
	fetch("/else", answer, sizeof(answer));
	assert_non_null(strstr(answer, "404"));
	leave(&fake);
}

static void ask(const char *request, char *answer, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	pump();
	n = recv(fd, answer, size - 1, MSG_DONTWAIT);
	answer[n > 0 ? n : 0] = '\0';
	close(fd);
	pump();
	assert_int_equal(agent.n_control_peers, 0);
}

static void test_control(void **state)
{
	static char answer[8192];
	char large[600];

	(void)state;
	struct fake fake = join(3);
	ask("{\"command\": \"status\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"level\":3"));
	ask("{\"command\": \"reboot\"}\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"unknown command\"}");
	ask("\n", answer, sizeof(answer));
	assert_string_equal(answer, "{\"error\":\"not a command\"}");
	memset(large, '[', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	ask(large, answer, sizeof(answer));
	leave(&fake);
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
		{"{\"command\":\"trace\",\"seconds\":0}\n", "expected up to 3600 seconds"},
		{"{\"command\":\"trace\",\"seconds\":1,\"gpu\":\"GPU-x\"}\n", "no such GPU"},
		{"{\"command\":5}\n", "not a command"},
	};
	char answer[512], expected[128];

	(void)state;
	struct fake fake = join(0);
	for (size_t i = 0; i < countof(bad); i++) {
		ask(bad[i].request, answer, sizeof(answer));
		snprintf(expected, sizeof(expected), "{\"error\":\"%s\"}", bad[i].error);
		assert_string_equal(answer, expected);
	}
	assert_int_equal(fake.control->hold, 0);
	assert_null(agent.scheduler.record.gpu);
	leave(&fake);
}

static void test_policy_by_command(void **state)
{
	char answer[512];

	(void)state;
	struct fake a = join(0), b = join(0);
	a.status->outstanding = b.status->outstanding = 1;
	ask("{\"command\":\"policy\",\"name\":\"wfq\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"wfq\""));
	assert_true(a.control->flags & WEIR_CONTROL_HOLDABLE);
	assert_int_equal(a.control->hold + b.control->hold, 1);
	ask("{\"command\":\"policy\",\"name\":\"levels\"}\n", answer, sizeof(answer));
	assert_int_equal(a.control->hold + b.control->hold, 0);
	assert_int_equal(a.control->flags, 0);
	ask("{\"command\":\"policy\"}\n", answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"policy\":\"levels\""));
	leave(&a);
	leave(&b);
}

static void test_hold_by_command(void **state)
{
	char answer[512], request[128];

	(void)state;
	struct fake fake = join(0);
	snprintf(request, sizeof(request),
		 "{\"command\":\"hold\",\"client\":%llu,\"seconds\":60}\n",
		 (unsigned long long)agent.last_number);
	ask(request, answer, sizeof(answer));
	assert_non_null(strstr(answer, "\"heldSeconds\":60"));
	assert_int_equal(fake.control->hold, 1);
	snprintf(request, sizeof(request), "{\"command\":\"hold\",\"client\":%llu,\"seconds\":0}\n",
		 (unsigned long long)agent.last_number);
	ask(request, answer, sizeof(answer));
	assert_int_equal(fake.control->hold, 0);
	leave(&fake);
}

static int start_recording(double seconds)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[128];

	snprintf(request, sizeof(request), "{\"command\":\"trace\",\"seconds\":%f}\n", seconds);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	for (int i = 0; i < 100 && !agent.scheduler.record.gpu; i++)
		loop_step(&agent.loop, 10);
	assert_non_null(agent.scheduler.record.gpu);
	return fd;
}

static void test_trace_by_command(void **state)
{
	char answer[4096];
	ssize_t n = -1;

	(void)state;
	struct fake fake = join(0);
	int fd = start_recording(0.05);
	static const char again[] = "{\"command\":\"trace\",\"seconds\":1}";
	uint64_t later;
	char *refusal = commands_answer(&agent, again, sizeof(again) - 1, &later);
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

	/* One who does not wait for it. */
	close(start_recording(60));
	for (int i = 0; i < 100 && agent.scheduler.record.gpu; i++)
		loop_step(&agent.loop, 10);
	assert_null(agent.scheduler.record.gpu);
	leave(&fake);
}

/* The service itself has tests of its own; this is the way there and back. */
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

	while ((r = receive(fake->fd, &message, fds)) == -EAGAIN)
		assert_true(loop_step(&agent.loop, -1) >= 0);
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
	struct fake fake = join(1);
	ask_to_compile(fake.fd, 7);
	expect_compiled(&fake, 7, WEIR_COMPILE_OK);
	ask_to_compile(fake.fd, 8);
	expect_compiled(&fake, 8, WEIR_COMPILE_OK);
	fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "weir_compile_requests_total{result=\"ok\"} 2\n"));
	assert_non_null(strstr(answer, "weir_compilations_total 1\n"));
	assert_non_null(strstr(answer, "weir_compile_cache_hits_total 1\n"));
	assert_non_null(strstr(answer, "weir_compile_cache_objects 1\n"));
	assert_non_null(strstr(answer, "weir_compile_seconds_count 1\n"));
	leave(&fake);
}

static void test_compile_off(void **state)
{
	(void)state;
	agent.compile.on = false;
	struct fake fake = join(1);
	ask_to_compile(fake.fd, 7);
	expect_compiled(&fake, 7, WEIR_COMPILE_OFF);
	leave(&fake);
}

static void test_compile_before_hello(void **state)
{
	(void)state;
	int fd = fake_connect();
	ask_to_compile(fd, 1);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
}

/* One that takes no answers is cut off. */
static void test_compile_deaf(void **state)
{
	(void)state;
	struct fake fake = join(1);
	agent.compile.on = false;
	for (int i = 0; i < 10000 && agent.n_sessions; i++) {
		struct weir_compile message = {.id = 1};
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
		weir_message_send(fake.fd, &message, sizeof(message), &null, 1);
		close(null);
		pump();
	}
	assert_int_equal(agent.n_sessions, 0);
	close(fake.fd);
}

/* The second agent does not take the first one's place. */
static void test_second_agent(void **state)
{
	struct server server;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/agent.sock", folder);
	assert_int_equal(server_init(&server, &agent.loop, path, SOCK_SEQPACKET, 0666, NULL),
			 -EADDRINUSE);
	server_deinit(&server);
	struct fake fake = join(1);
	leave(&fake);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define AGENT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(test_welcome),
		AGENT_TEST(test_reading_is_not_writing),
		AGENT_TEST(test_level_changes_live),
		AGENT_TEST(test_deaf_client),
		AGENT_TEST(test_killed),
		AGENT_TEST(test_many_share),
		AGENT_TEST(test_restart),
		AGENT_TEST(test_bad_messages),
		AGENT_TEST(test_unknown_type),
		AGENT_TEST(test_unknown_gpu),
		AGENT_TEST(test_unknown_gpus_are_limited),
		AGENT_TEST(test_limits),
		AGENT_TEST(test_no_room_for_pages),
		AGENT_TEST(test_nothing_grows),
		AGENT_TEST(test_unseen_process),
		AGENT_TEST(test_silent),
		AGENT_TEST(test_garbage_status),
		AGENT_TEST(test_pod),
		AGENT_TEST(test_http),
		AGENT_TEST(test_control),
		AGENT_TEST(test_bad_commands),
		AGENT_TEST(test_policy_by_command),
		AGENT_TEST(test_hold_by_command),
		AGENT_TEST(test_trace_by_command),
		AGENT_TEST(test_second_agent),
		AGENT_TEST(test_compile),
		AGENT_TEST(test_compile_off),
		AGENT_TEST(test_compile_before_hello),
		AGENT_TEST(test_compile_deaf),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
