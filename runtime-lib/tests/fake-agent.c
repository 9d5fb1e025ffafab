#include "fake-agent.h"

#include "weir/base.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define must(condition)                                                                   \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "fake agent: %s (%s:%d)\n", #condition, __FILE__, \
				__LINE__);                                                \
			abort();                                                          \
		}                                                                         \
	} while (0)

static struct {
	pthread_t thread;
	struct fake_agent *agent;
	uint8_t level, bit;
} helper;

static void *page_new(int *fd)
{
	*fd = memfd_create("page", MFD_CLOEXEC);
	must(*fd >= 0 && ftruncate(*fd, WEIR_PAGE_SIZE) == 0);
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	must(page != MAP_FAILED);
	return page;
}

void fake_agent_start(struct fake_agent *agent)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, agent->socket_path, sizeof(agent->socket_path));
	unlink(agent->socket_path);
	agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(bind(agent->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	must(listen(agent->listener, 8) == 0);
}

void fake_agent_stop(struct fake_agent *agent)
{
	if (agent->client >= 0)
		close(take_fd(agent->client));
	if (agent->listener >= 0)
		close(take_fd(agent->listener));
	unlink(agent->socket_path);
}

static void open_own(struct fake_agent *agent)
{
	agent->control = page_new(&agent->control_fd);
	agent->status = page_new(&agent->status_fd);
}

static void close_own(struct fake_agent *agent)
{
	munmap(agent->control, WEIR_PAGE_SIZE);
	munmap(agent->status, WEIR_PAGE_SIZE);
	close(agent->control_fd);
	close(agent->status_fd);
}

void fake_agent_renew(struct fake_agent *agent)
{
	close_own(agent);
	open_own(agent);
}

void fake_agent_init(struct fake_agent *agent)
{
	*agent = (struct fake_agent){.listener = -1, .client = -1};
	snprintf(agent->socket_path, sizeof(agent->socket_path), "/tmp/weir-test-%d.sock",
		 (int)getpid());
	setenv("WEIR_SOCKET", agent->socket_path, 1);
	for (size_t q = 0; q < WEIR_DEMAND_LEVELS; q++)
		agent->demand[q] = page_new(&agent->demand_fds[q]);
	open_own(agent);
	fake_agent_start(agent);
}

void fake_agent_deinit(struct fake_agent *agent)
{
	fake_agent_stop(agent);
	for (size_t q = 0; q < WEIR_DEMAND_LEVELS; q++) {
		munmap(agent->demand[q], WEIR_PAGE_SIZE);
		close(agent->demand_fds[q]);
	}
	close_own(agent);
}

void fake_agent_accept(struct fake_agent *agent)
{
	struct pollfd wait = {.fd = agent->listener, .events = POLLIN};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	must(poll(&wait, 1, EVENTUALLY_MS) == 1);
	agent->client = accept4(agent->listener, NULL, NULL, SOCK_CLOEXEC);
	wait.fd = agent->client;
	must(poll(&wait, 1, EVENTUALLY_MS) == 1);
	must(weir_message_receive(agent->client, &message, fds, &n_fds) == 0);
	must(message.header.type == WEIR_HELLO);
	agent->hello = message.hello;
}

/* Demand pages for a level, behind the @n descriptors that are there already. */
static size_t add_level(struct fake_agent *agent, int *fds, size_t n, uint8_t level)
{
	if (level < WEIR_DEMAND_LEVELS)
		fds[n++] = agent->demand_fds[level];
	for (uint8_t q = 0; q < level; q++)
		fds[n++] = agent->demand_fds[q];
	return n;
}

/* As soon as the client has taken enough of what came before. */
static void say(struct fake_agent *agent, const void *message, size_t size, const int *fds,
		size_t n)
{
	struct pollfd wait = {.fd = agent->client, .events = POLLOUT};

	must(poll(&wait, 1, EVENTUALLY_MS) == 1);
	must(weir_message_send(agent->client, message, size, fds, n) == 0);
}

void fake_agent_welcome(struct fake_agent *agent, uint8_t level, uint8_t bit)
{
	struct weir_welcome welcome = {.level = level, .bit = bit, .client = 1};
	int fds[WEIR_FDS_MAX] = {agent->control_fd, agent->status_fd};

	weir_header_init(&welcome.header, WEIR_WELCOME, sizeof(welcome));
	say(agent, &welcome, sizeof(welcome), fds, add_level(agent, fds, 2, level));
}

static void say_level(struct fake_agent *agent, struct weir_level message)
{
	int fds[WEIR_FDS_MAX];

	weir_header_init(&message.header, WEIR_LEVEL, sizeof(message));
	say(agent, &message, sizeof(message), fds, add_level(agent, fds, 0, message.level));
}

void fake_agent_level(struct fake_agent *agent, uint8_t level)
{
	say_level(agent, (struct weir_level){.level = level});
}

void fake_agent_raise(struct fake_agent *agent, uint8_t level, uint8_t bit)
{
	say_level(agent, (struct weir_level){.level = level, .bit = (uint8_t)(bit + 1)});
}

void fake_agent_new_demand(struct fake_agent *agent)
{
	for (size_t q = 0; q < WEIR_DEMAND_LEVELS; q++) {
		if (agent->former[q])
			munmap(agent->former[q], WEIR_PAGE_SIZE);
		agent->former[q] = agent->demand[q];
		close(agent->demand_fds[q]);
		agent->demand[q] = page_new(&agent->demand_fds[q]);
		atomic_store(&agent->demand[q]->word, atomic_load(&agent->former[q]->word));
	}
}

void fake_agent_asked(struct fake_agent *agent, struct fake_request *request)
{
	struct pollfd wait = {.fd = agent->client, .events = POLLIN};
	union weir_message message;
	struct stat info;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	must(poll(&wait, 1, EVENTUALLY_MS) == 1);
	must(weir_message_receive(agent->client, &message, fds, &n_fds) == 0);
	must(message.header.type == WEIR_COMPILE);
	request->id = message.compile.id;
	must(fcntl(fds[0], F_GET_SEALS) ==
	     (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL));
	must(fstat(fds[0], &info) == 0);
	request->file = malloc((size_t)info.st_size);
	must(pread(fds[0], request->file, (size_t)info.st_size, 0) == info.st_size);
	close(fds[0]);
	must(request->file->magic == WEIR_COMPILE_MAGIC &&
	     request->file->image + request->file->image_size == (uint64_t)info.st_size);
	request->name = (const char *)request->file + request->file->name;
	request->image = (const char *)request->file + request->file->image;
	must(strlen(request->name) + 1 == request->file->name_size);
}

bool fake_agent_quiet(struct fake_agent *agent)
{
	struct pollfd now = {.fd = agent->client, .events = POLLIN};

	return poll(&now, 1, 0) == 0;
}

void fake_agent_compiled(struct fake_agent *agent, uint32_t id, uint32_t status, const void *object,
			 size_t size)
{
	struct weir_compiled message = {.id = id, .status = status};
	int file = memfd_create("object", MFD_CLOEXEC);

	must(file >= 0 && write(file, object, size) == (ssize_t)size);
	weir_header_init(&message.header, WEIR_COMPILED, sizeof(message));
	if (status != WEIR_COMPILE_OK)
		strcpy(message.text, "the test says so");
	say(agent, &message, sizeof(message), &file, size != 0);
	close(file);
}

void fake_agent_profile(struct fake_agent *agent, uint32_t id, uint8_t digest,
			const struct weir_profile *entries, uint32_t n)
{
	struct weir_profile_message message = {.id = id, .n = n};

	weir_header_init(&message.header, WEIR_PROFILE, sizeof(message));
	memset(message.kernel, digest, sizeof(message.kernel));
	for (uint32_t i = 0; i < n; i++)
		message.entries[i] = entries[i];
	say(agent, &message, sizeof(message), NULL, 0);
}

struct weir_learned fake_agent_learned(struct fake_agent *agent)
{
	struct pollfd wait = {.fd = agent->client, .events = POLLIN};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	must(poll(&wait, 1, EVENTUALLY_MS) == 1);
	must(weir_message_receive(agent->client, &message, fds, &n_fds) == 0);
	must(message.header.type == WEIR_LEARNED);
	return message.learned;
}

static void *welcome_next(void *unused)
{
	(void)unused;
	fake_agent_accept(helper.agent);
	fake_agent_welcome(helper.agent, helper.level, helper.bit);
	return NULL;
}

void fake_agent_welcome_next(struct fake_agent *agent, uint8_t level, uint8_t bit)
{
	helper.agent = agent;
	helper.level = level;
	helper.bit = bit;
	must(pthread_create(&helper.thread, NULL, welcome_next, NULL) == 0);
}

void fake_agent_join(void)
{
	pthread_join(helper.thread, NULL);
}
