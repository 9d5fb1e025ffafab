#include "robustness/hostile/client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *agent_socket;
static uint8_t gpu[16];

uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void harm(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("hostile: ", stdout);
	vprintf(format, args);
	puts("");
	va_end(args);
	exit(1);
}

void cannot(const char *what)
{
	printf("hostile: cannot %s: %s\n", what, strerror(errno));
	exit(2);
}

bool client_set_gpu(const char *id)
{
	size_t n = 0;

	if (strncmp(id, "GPU-", 4) != 0)
		return false;
	for (id += 4; *id && n < sizeof(gpu); id += *id == '-') {
		unsigned byte;
		if (sscanf(id, "%2x", &byte) != 1)
			return false;
		gpu[n++] = (uint8_t)byte;
		id += 2;
	}
	return n == sizeof(gpu);
}

void client_copy_gpu(uint8_t out[16])
{
	memcpy(out, gpu, sizeof(gpu));
}

void become(uid_t uid)
{
	if (setgid(uid) < 0 || setuid(uid) < 0)
		cannot("become another user");
}

int client_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", agent_socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		cannot("connect to the agent");
	return fd;
}

struct weir_hello client_hello(void)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE};

	memcpy(hello.gpu, gpu, sizeof(gpu));
	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	snprintf(hello.library, sizeof(hello.library), "hostile");
	return hello;
}

bool client_hear(int socket, union weir_message *message, int *fds, size_t *n_fds, int ms)
{
	struct pollfd poll_fd = {.fd = socket, .events = POLLIN};

	return poll(&poll_fd, 1, ms) == 1 && weir_message_receive(socket, message, fds, n_fds) == 0;
}

int client_join(union weir_message *welcome, int *fds)
{
	struct weir_hello hello = client_hello();
	int fd = client_connect();
	size_t n;

	if (weir_message_send(fd, &hello, sizeof(hello), NULL, 0) == 0 &&
	    client_hear(fd, welcome, fds, &n, 20000) && welcome->header.type == WEIR_WELCOME)
		return fd;
	close(fd);
	return -1;
}

size_t welcome_fds(const union weir_message *welcome)
{
	uint8_t level = welcome->welcome.level;

	return 2u + (level < WEIR_DEMAND_LEVELS) + level;
}

void close_fds(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

bool client_account(union weir_message *account, int *fds, size_t *n_fds)
{
	struct weir_memory question = {0};
	int fd = client_connect();

	memcpy(question.gpu, gpu, sizeof(gpu));
	weir_header_init(&question.header, WEIR_MEMORY, sizeof(question));
	bool given = weir_message_send(fd, &question, sizeof(question), NULL, 0) == 0 &&
		     client_hear(fd, account, fds, n_fds, 20000) &&
		     account->header.type == WEIR_ACCOUNT;
	close(fd);
	return given;
}

bool client_is_cut_off(int socket, int ms)
{
	uint64_t end = clock_ms() + (uint64_t)ms;
	char packet[WEIR_MESSAGE_MAX];

	for (uint64_t now = clock_ms(); now < end; now = clock_ms()) {
		struct pollfd poll_fd = {.fd = socket, .events = POLLIN};
		if (poll(&poll_fd, 1, (int)(end - now)) == 1 &&
		    recv(socket, packet, sizeof(packet), MSG_DONTWAIT) <= 0)
			return true;
	}
	return false;
}

static bool come_and_go(int times)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];

	become(BYSTANDER_UID);
	for (int i = 0; i < times; i++) {
		int socket = client_join(&welcome, fds);
		if (socket < 0)
			return false;
		close_fds(fds, welcome_fds(&welcome));
		close(socket);
	}
	return true;
}

bool bystander_gets_in(int times)
{
	int status = 1;
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child == 0)
		_exit(come_and_go(times) ? 0 : 1);
	return waitpid(child, &status, 0) == child && status == 0;
}
