/* Sends too many descriptors, and descriptors of every wrong kind. */
#include "robustness/hostile/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS   20
#define RIGHTS   250 /* a packet may carry 253 */
#define VAST     (1ull << 40)
#define PENDING  8 /* WEIR_COMPILE_PENDING */
#define PIPE_FD  0
#define FD_KINDS 8

/* A memory file of @size, sealed as the protocol wants it where @seals. */
static int memory_file(uint64_t size, bool seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    (seals &&
	     fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0))
		cannot("make a memory file");
	return fd;
}

/* @self: the connection itself, so a circle of descriptors. */
static void open_kinds(int kinds[FD_KINDS], int self)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		cannot("make a pipe");
	kinds[PIPE_FD] = ends[0];
	kinds[1] = ends[1];
	kinds[2] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kinds[3] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	kinds[4] = eventfd(0, EFD_CLOEXEC);
	kinds[5] = memory_file(4096, false);
	kinds[6] = memory_file(VAST, true);
	kinds[7] = fcntl(self, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < FD_KINDS; i++)
		if (kinds[i] < 0)
			cannot("open a descriptor");
}

static void close_kinds(const int kinds[FD_KINDS])
{
	for (int i = 0; i < FD_KINDS; i++)
		close(kinds[i]);
}

static struct weir_compile question(uint32_t id)
{
	struct weir_compile message = {.id = id};

	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	return message;
}

/* One answer each; none has an object. */
static void ask_for_all(int socket, const int kinds[FD_KINDS])
{
	union weir_message answer;
	int fds[WEIR_FDS_MAX];
	size_t n;

	for (uint32_t i = 0; i < FD_KINDS; i++) {
		struct weir_compile message = question(i);
		if (weir_message_send(socket, &message, sizeof(message), &kinds[i], 1) < 0 ||
		    !client_hear(socket, &answer, fds, &n, 10000) ||
		    answer.header.type != WEIR_COMPILED)
			harm("no answer to COMPILE with a descriptor of kind %u", i);
		if (answer.compiled.status == WEIR_COMPILE_OK)
			harm("an object is made of a descriptor of kind %u", i);
	}
}

/* A packet with as many descriptors as the kernel takes. */
static void send_rights(int socket, const void *message, size_t size, int fd)
{
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(RIGHTS * sizeof(int))];
	struct iovec data = {.iov_base = (void *)message, .iov_len = size};
	struct msghdr header = {.msg_iov = &data,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(RIGHTS * sizeof(int));
	for (size_t i = 0; i < RIGHTS; i++)
		memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(fd));
	if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
		cannot("send descriptors");
}

static void must_be_refused(int socket, const char *what)
{
	if (!client_is_cut_off(socket, 10000))
		harm("%s: the connection stands", what);
	close(socket);
}

static void send_too_many(void)
{
	struct weir_compile compile = question(0);
	struct weir_hello hello = client_hello();
	union weir_message welcome;
	int fds[WEIR_FDS_MAX], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int socket = client_connect();

	send_rights(socket, &hello, sizeof(hello), null);
	must_be_refused(socket, "HELLO with descriptors");
	socket = client_join(&welcome, fds);
	if (socket < 0)
		cannot("join");
	send_rights(socket, &compile, sizeof(compile), null);
	must_be_refused(socket, "COMPILE with 250 descriptors");
	close_fds(fds, welcome_fds(&welcome));
	close(null);
}

void attack_rights(void)
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX], kinds[FD_KINDS];

	for (int round = 0; round < ROUNDS; round++) {
		int socket = client_join(&welcome, fds);
		if (socket < 0)
			harm("no longer let in after %d rounds", round);
		open_kinds(kinds, socket);
		ask_for_all(socket, kinds);
		close_kinds(kinds);
		close_fds(fds, welcome_fds(&welcome));
		close(socket);
		send_too_many();
	}
}
