#include "agent-fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "weir/http.h"
#include "daemon/session.h"
#include "compile-fixture.h"

struct agent agent;
char rig_folder[] = "/tmp/weir-test-XXXXXX";
struct container_identity next_identity;
struct pod *known_pod;
int identify_error;
pods_changed_fn *tell_changed;
unsigned rig_hurried;
useconds_t rig_delay;
uint64_t rig_delayed;

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
	usleep(rig_delay);
	rig_delayed = loop_now();
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

const struct pod *__wrap_pods_search(const struct pods *pods, bool (*is)(const struct pod *pod));
const struct pod *__wrap_pods_search(const struct pods *pods, bool (*is)(const struct pod *pod))
{
	(void)pods;
	return known_pod && is(known_pod) ? known_pod : NULL;
}

void __wrap_pods_each(const struct pods *pods, void (*each)(void *, const struct pod *),
		      void *userdata);
void __wrap_pods_each(const struct pods *pods, void (*each)(void *, const struct pod *),
		      void *userdata)
{
	(void)pods;
	if (known_pod)
		each(userdata, known_pod);
}

bool __wrap_pods_connected(const struct pods *pods);
bool __wrap_pods_connected(const struct pods *pods)
{
	(void)pods;
	return known_pod != NULL;
}

void __wrap_pods_hurry(struct pods *pods);
void __wrap_pods_hurry(struct pods *pods)
{
	(void)pods;
	rig_hurried++;
}

struct pod *rig_pod(const char *namespace_, const char *priority)
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

void rig_start(bool standalone)
{
	struct config config;
	char text[2048], message[256];

	snprintf(text, sizeof(text),
		 "socket: %s/agent.sock\nstateDir: %s/state\ncontrol: {socket: %s/control.sock}\n"
		 "metrics: {address: '127.0.0.1:0'}\nnvml: /nowhere\nlogLevel: error\n"
		 "kubernetes: {enabled: true, events: false, nodeLabels: false}\nlimits: {clients: "
		 "90, clientsPerContainer: 80}\n"
		 "levels: {raiseNamespaces: [trusted]}\n"
		 "standalone: {rules: [{uid: 1, level: normal}, {uid: 2, level: high}, "
		 "{uid: 3, level: critical}]}\ncompile: {mode: ptx, program: %s}\n",
		 rig_folder, rig_folder, rig_folder, fixture_program());
	log_set_level(LOG_ERROR);
	assert_int_equal(
		config_parse(&config, "test", text, strlen(text), message, sizeof(message)), 0);
	assert_int_equal(agent_init(&agent, &config, standalone), 0);
}

void rig_pump(void)
{
	while (loop_step(&agent.loop, 0) > 0)
		;
}

int rig_set_up(void **state)
{
	(void)state;
	identify_error = 0;
	next_identity = (struct container_identity){.cgroup = "/"};
	known_pod = NULL;
	rig_start(true);
	return 0;
}

static void remove_state(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/state", rig_folder);
	assert_int_equal(system(command), 0);
}

int rig_tear_down(void **state)
{
	(void)state;
	agent_deinit(&agent);
	remove_state();
	return 0;
}

void rig_expect_metric(const char *text, const char *name, const char *value)
{
	char wanted[64], *line = strstr(text, name);

	assert_non_null(line);
	snprintf(wanted, sizeof(wanted), "} %s\n", value);
	assert_memory_equal(strchr(line, '}'), wanted, strlen(wanted));
}

void rig_ask(const char *request, char *answer, size_t size)
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

char *rig_status(void)
{
	static const char request[] = "{\"command\": \"status\"}";
	uint64_t later;
	char *status = commands_answer(&agent.commands, request, strlen(request), &later);

	assert_non_null(status);
	return status;
}

int rig_make_folder(void **state)
{
	(void)state;
	return mkdtemp(rig_folder) ? 0 : -1;
}

int rig_remove_folder(void **state)
{
	(void)state;
	return rmdir(rig_folder);
}

int fake_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent.sock", rig_folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

struct weir_hello fake_hello(uint8_t claim)
{
	struct weir_hello message = {.gpu = "0123456789abcde", .claimed_bit = claim};

	weir_header_init(&message.header, WEIR_HELLO, sizeof(message));
	snprintf(message.library, sizeof(message.library), "%s", "test");
	return message;
}

static void *fake_map(int fd, int protection)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, protection, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

void fake_take_level(struct fake *fake, uint8_t level, const int *fds)
{
	fake->level = level;
	fake->wait = NULL;
	fake->wait_fd = -1;
	if (level < WEIR_DEMAND_LEVELS) {
		fake->wait_fd = *fds;
		fake->wait = fake_map(*fds++, PROT_READ);
	}
	for (int below = 0; below < level; below++)
		fake->below[below] = fake_map(*fds++, PROT_READ | PROT_WRITE);
}

int fake_receive(int fd, union weir_message *message, int *fds)
{
	size_t n;

	return weir_message_receive(fd, message, fds, &n);
}

void fake_welcome(struct fake *fake)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	assert_int_equal(fake_receive(fake->fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_WELCOME);
	fake->bit = message.welcome.bit;
	fake->control = fake_map(fds[0], PROT_READ | PROT_WRITE);
	fake->status = fake_map(fds[1], PROT_READ | PROT_WRITE);
	close(fds[0]);
	close(fds[1]);
	fake_take_level(fake, message.welcome.level, fds + 2);
}

struct fake fake_claim(uid_t uid, uint8_t claim)
{
	struct weir_hello message = fake_hello(claim);
	struct fake fake = {.fd = fake_connect()};

	next_identity.uid = uid;
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
	rig_pump();
	return fake;
}

struct fake fake_join_claiming(uid_t uid, uint8_t claim)
{
	struct fake fake = fake_claim(uid, claim);

	fake_welcome(&fake);
	return fake;
}

struct fake fake_join(uid_t uid)
{
	return fake_join_claiming(uid, WEIR_BIT_NONE);
}

void fake_leave(struct fake *fake)
{
	close(fake->fd);
	rig_pump();
}

void fake_demand(const struct fake *fake)
{
	for (int below = 0; below < fake->level; below++)
		atomic_fetch_or(&fake->below[below]->word, 1ull << fake->bit);
}

void expect_refused(int fd, enum weir_refusal reason)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	rig_pump();
	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_REFUSED);
	assert_int_equal(message.refused.reason, reason);
	assert_true(strlen(message.refused.text) > 0);
	assert_true(fake_receive(fd, &message, fds) < 0);
	close(fd);
	assert_int_equal(agent.sessions.n, 0);
}

void rig_fetch(const char *path, char *answer, size_t size)
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
	for (uint64_t end = loop_now() + 30 * NS_PER_S;;) {
		assert_true(loop_now() < end);
		assert_true(loop_step(&agent.loop, 10) >= 0);
		ssize_t n = recv(fd, answer + at, size - at - 1, 0);
		if (n == 0)
			break;
		assert_true(n > 0 || errno == EAGAIN || errno == EINTR);
		at += n > 0 ? (size_t)n : 0;
		assert_true(at < size - 1);
	}
	answer[at] = '\0';
	close(fd);
}
