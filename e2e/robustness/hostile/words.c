/* Hostile contents: garbage, bad names, lies about work, and messages from the wrong process. */
#include "robustness/hostile/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKETS 3000

static uint64_t state = 0x5eed;

static uint64_t next_random(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Any bytes; mostly behind a header that is almost right, of any type. */
static size_t make_packet(uint8_t packet[2 * WEIR_MESSAGE_MAX])
{
	struct weir_header header;
	size_t size = next_random() % (2 * WEIR_MESSAGE_MAX) + 1;

	for (size_t i = 0; i < size; i++)
		packet[i] = (uint8_t)next_random();
	if (next_random() % 8 && size >= sizeof(header)) {
		weir_header_init(&header, (enum weir_message_type)(next_random() % 12),
				 next_random() % 8 ? size : next_random());
		header.version = (uint16_t)(next_random() % 4);
		memcpy(packet, &header, sizeof(header));
	}
	return size;
}

void attack_garbage(void)
{
	uint8_t packet[2 * WEIR_MESSAGE_MAX];
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];

	for (int i = 0; i < PACKETS; i++) {
		int socket = i % 4 ? client_connect() : client_join(&welcome, fds);
		if (socket < 0)
			harm("no longer let in after %d packets", i);
		if (i % 4 == 0)
			close_fds(fds, welcome_fds(&welcome));
		size_t size = make_packet(packet);
		if (send(socket, packet, size, MSG_NOSIGNAL) < 0)
			cannot("send");
		close(socket);
	}
}

/* A connection belongs to the process that made it. A process that passes the descriptor on and
 * ends also ends the client. */
void attack_orphan(void)
{
	int sockets[2];
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];

	int socket = client_connect();
	struct weir_hello hello = client_hello();
	size_t n;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		cannot("make a pair of sockets");
	pid_t child = fork();
	if (child == 0) {
		int own = client_join(&welcome, fds);
		_exit(own < 0 || weir_message_send(sockets[1], &hello, sizeof(hello), &own, 1) < 0);
	}
	/* weir_message_receive() cannot be used: HELLO has no descriptor. */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {.iov_base = &hello, .iov_len = sizeof(hello)};
	struct msghdr header = {.msg_iov = &data,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	if (recvmsg(sockets[0], &header, 0) < 0 || !CMSG_FIRSTHDR(&header))
		cannot("take over a connection");
	int taken;
	memcpy(&taken, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(taken));
	waitpid(child, NULL, 0);
	if (!client_is_cut_off(taken, 10000))
		harm("the connection of a dead process stands");
	/* The same for a connection before WELCOME. */
	hello = client_hello();
	if (weir_message_send(socket, &hello, sizeof(hello), NULL, 0) < 0 ||
	    !client_hear(socket, &welcome, fds, &n, 10000))
		harm("the living are not let in");
}

/* Names that would inject text into logs, tables and terminals. The test checks these outputs; the
 * client stays until it is killed. */
void attack_words(void)
{
	struct weir_hello hello = client_hello();
	union weir_message welcome;
	int fds[WEIR_FDS_MAX], socket = client_connect();
	size_t n;

	prctl(PR_SET_NAME, "\x1b[31m\"}\n\xff<e>");
	snprintf(hello.library, sizeof(hello.library), "\x1b]0;owned\a\n\"},{\"level\":3,\xc3");
	if (weir_message_send(socket, &hello, sizeof(hello), NULL, 0) < 0 ||
	    !client_hear(socket, &welcome, fds, &n, 10000) || welcome.header.type != WEIR_WELCOME)
		harm("not let in");
	puts("ready");
	fflush(stdout);
	pause();
}

static void *map_page(int fd)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		cannot("map a page");
	return page;
}

/* Always reports that its work is almost done, which hpf would prefer. */
static void lie(struct weir_status_page *status)
{
	for (;;) {
		status->outstanding = 1;
		status->remaining = 1 + next_random() % 2;
		status->executed = next_random();
		status->gpu_time = next_random();
		status->eviction_cost = next_random();
		usleep(200);
	}
}

static void be_liar(void)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];

	if (client_join(&welcome, fds) < 0)
		cannot("join");
	lie(map_page(fds[1]));
}

#define TURNS 5

/* Waits to be held and released several times. */
static void be_honest(void)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];
	unsigned turns = 0, held = 0;
	bool is_held = false;

	if (client_join(&welcome, fds) < 0)
		cannot("join");
	struct weir_control_page *control = map_page(fds[0]);
	struct weir_status_page *status = map_page(fds[1]);
	status->outstanding = 1;
	status->remaining = 10000000000;
	for (uint64_t end = clock_ms() + 20000; turns < TURNS && clock_ms() < end; usleep(500)) {
		bool now = control->hold != 0;
		held += now && !is_held;
		turns += !now && is_held;
		is_held = now;
	}
	if (held == 0)
		harm("nobody was ever held: the lie was not heard");
	if (turns < TURNS)
		harm("%u turns in 20 s beside one that always has almost nothing left", turns);
}

static pid_t start_as(uid_t uid, void (*what)(void))
{
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child > 0)
		return child;
	become(uid);
	what();
	exit(0);
}

/* The honest client of the same level gets its share nevertheless. */
void attack_liar(void)
{
	pid_t liar = start_as(HOSTILE_UID, be_liar);
	pid_t honest = start_as(BYSTANDER_UID, be_honest);
	int status = 1;

	waitpid(honest, &status, 0);
	kill(liar, SIGKILL);
	waitpid(liar, NULL, 0);
	if (status != 0)
		exit(1);
}

/* Connects to another GPU's socket, like a container with a part of that GPU. */
void attack_socket(void)
{
	struct weir_memory question = {0};
	union weir_message answer;
	int fds[WEIR_FDS_MAX];
	size_t n;

	if (client_join(&answer, fds) >= 0)
		harm("the pages of another GPU are given out");
	weir_header_init(&question.header, WEIR_MEMORY, sizeof(question));
	client_copy_gpu(question.gpu);
	int socket = client_connect();
	if (weir_message_send(socket, &question, sizeof(question), NULL, 0) < 0 ||
	    !client_hear(socket, &answer, fds, &n, 10000) || answer.header.type != WEIR_REFUSED)
		harm("an account on another GPU is given out");
}
