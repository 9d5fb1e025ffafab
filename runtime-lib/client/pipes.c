#include "client/pipes.h"

#include "shim/connect.h"
#include "shim/weak-libc.h"

#include "weir/base.h"
#include "weir/log.h"
#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define VARIABLE   "CUDA_MPS_PIPE_DIRECTORY"
#define ANSWER_MS  5000 /* for the first answer: a process cannot change its server */
#define FOLDER_MAX (PATH_MAX - 32)

static struct {
	struct once asked;
	_Atomic int number; /* of the descriptor; 0: none */
	/* What it is. A program that closes descriptors may have another file there. */
	dev_t device;
	ino_t inode;
} state;

/* The folder of the links, which ends with a slash. False: no GPU has a server for each level. */
static bool find_folder(char folder[FOLDER_MAX])
{
	const char *socket = connect_path(), *end = strrchr(socket, '/');
	struct stat info;
	int n = end ? snprintf(folder, FOLDER_MAX, "%.*s/" WEIR_PIPES_NAME "/", (int)(end - socket),
			       socket)
		    : 0;

	return n > 0 && n < FOLDER_MAX && stat(folder, &info) == 0;
}

/* By WEIR_GPU, which the device plugin sets. Zeros: it does not say. */
static void read_gpu(uint8_t uuid[16])
{
	const char *text = getenv("WEIR_GPU");
	unsigned byte, n = 0;
	int used;

	memset(uuid, 0, 16);
	if (!text || strncmp(text, "GPU-", 4) != 0)
		return;
	for (text += 4; n < 16 && sscanf(text, "%2x%n", &byte, &used) == 1 && used == 2; n++) {
		uuid[n] = (uint8_t)byte;
		text += 2;
		text += *text == '-';
	}
	if (n < 16)
		memset(uuid, 0, 16);
}

/* A descriptor, or a negative errno. -EAGAIN: another answer follows. */
static int hear(int socket, int timeout_ms)
{
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	if (poll(&wait, 1, timeout_ms) != 1)
		return -ETIMEDOUT;
	int r = weir_message_receive(socket, &message, fds, &n);
	if (r != 0)
		return r < 0 && r != -EAGAIN ? r : -EPROTO;
	if (message.header.type == WEIR_PIPES_ANSWER &&
	    message.pipes_answer.status == WEIR_PIPES_OK)
		return fds[0];
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return message.header.type == WEIR_PIPES_ANSWER &&
			       message.pipes_answer.status == WEIR_PIPES_LATER
		       ? -EAGAIN
		       : -ENOENT;
}

static int ask(void)
{
	struct weir_pipes question = {0};
	cleanup(closep) int socket = connect_agent();

	if (socket < 0)
		return socket;
	weir_header_init(&question.header, WEIR_PIPES, sizeof(question));
	read_gpu(question.gpu);
	int r = weir_message_send(socket, &question, sizeof(question), NULL, 0);
	if (r < 0)
		return r;
	shutdown(socket, SHUT_WR);
	r = hear(socket, ANSWER_MS);
	return r == -EAGAIN ? hear(socket, WEIR_PIPES_WAIT_MS) : r;
}

/* Gives the descriptor a number for which there is a link. Takes @fd. */
static int put(int fd)
{
	int number = fcntl(fd, F_DUPFD_CLOEXEC, WEIR_PIPES_FD);
	struct stat info;

	close(fd);
	if (number < 0)
		return -errno;
	if (number >= WEIR_PIPES_FD + WEIR_PIPES_NUMBERS || fstat(number, &info) < 0) {
		close(number);
		return -EMFILE;
	}
	state.device = info.st_dev;
	state.inode = info.st_ino;
	store_release(&state.number, number);
	return number;
}

static bool is_ours(int number)
{
	struct stat info;

	return number && fstat(number, &info) == 0 && info.st_dev == state.device &&
	       info.st_ino == state.inode;
}

static void join(void)
{
	char folder[FOLDER_MAX], path[PATH_MAX];
	const char *given = getenv(VARIABLE);

	if (!find_folder(folder))
		return;
	/* A parent's libweir may have set it, to a descriptor that we do not have. */
	bool inherited = given && strncmp(given, folder, strlen(folder)) == 0;
	if (given && *given && !inherited)
		return;
	int number = atomic_exchange(&state.number, 0);
	if (is_ours(number))
		close(number);
	int r = ask();
	if (r >= 0)
		r = put(r);
	if (r < 0) {
		log_limited(LOG_INFO, 60, "no MPS server for this process: %s", strerror(-r));
		if (inherited)
			unsetenv(VARIABLE);
		return;
	}
	snprintf(path, sizeof(path), "%s%d", folder, r);
	setenv(VARIABLE, path, 1);
}

void pipes_join(void)
{
	once(&state.asked, join);
}

void pipes_take(int fd)
{
	int number = load_acquire(&state.number);
	struct stat info;

	if (is_ours(number) && fstat(fd, &info) == 0 && dup3(fd, number, O_CLOEXEC) == number) {
		state.device = info.st_dev;
		state.inode = info.st_ino;
	}
	close(fd);
}

void pipes_fork(void)
{
	atomic_store(&state.asked.state, 0);
}
