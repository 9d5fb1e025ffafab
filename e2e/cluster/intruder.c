/* An attack by root in a container on the pages from the agent and on libweir. It tries to write a
 * read-only page, which would hold or release other clients; to truncate writable pages, so that
 * readers fault; and to remove libweir or the agent's socket. Prints a line and exits with 0 if
 * every attempt failed, with 1 if one worked. Needs no GPU.
 */
#include "weir/base.h"
#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define TRIES  300 /* for an agent that is away or restarts meanwhile */
#define TRY_NS 100000000

static int failures;

static void must_fail(const char *what, bool worked)
{
	if (worked) {
		printf("intruder: %s worked\n", what);
		failures++;
	}
}

/* GPU-01234567-89ab-…, from the device plugin. */
static bool parse_uuid(uint8_t out[16], const char *text)
{
	size_t n = 0;

	if (!text || strncmp(text, "GPU-", 4) != 0)
		return false;
	for (text += 4; *text && n < 16; text += *text == '-') {
		unsigned byte;
		if (sscanf(text, "%2x", &byte) != 1)
			return false;
		out[n++] = (uint8_t)byte;
		text += 2;
	}
	return n == 16;
}

static int connect_agent(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = WEIR_SOCKET_PATH};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Sends HELLO and keeps the descriptors of the WELCOME. */
static bool join(int socket, union weir_message *welcome, int *fds, size_t *n_fds)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE};
	struct pollfd poll_fd = {.fd = socket, .events = POLLIN};

	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	return parse_uuid(hello.gpu, getenv("WEIR_GPU")) &&
	       weir_message_send(socket, &hello, sizeof(hello), NULL, 0) == 0 &&
	       poll(&poll_fd, 1, 10000) == 1 &&
	       weir_message_receive(socket, welcome, fds, n_fds) == 0 &&
	       welcome->header.type == WEIR_WELCOME;
}

/* Retries until an agent accepts the connection; -1: none does. */
static int enter(union weir_message *welcome, int *fds, size_t *n_fds)
{
	static const struct timespec moment = {.tv_nsec = TRY_NS};

	for (int i = 0; i < TRIES; i++) {
		int agent = connect_agent();
		if (agent >= 0 && join(agent, welcome, fds, n_fds))
			return agent;
		if (agent >= 0)
			close(agent);
		nanosleep(&moment, NULL);
	}
	return -1;
}

static bool can_open(const char *path, int flags)
{
	cleanup(closep) int fd = open(path, flags | O_CLOEXEC);

	return fd >= 0;
}

static bool can_map(int fd)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page != MAP_FAILED;
}

static bool can_change_later(int fd)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);

	return page != MAP_FAILED && mprotect(page, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE) == 0;
}

static void attack(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must_fail("mapping it writable", can_map(fd));
	must_fail("mprotect()", can_change_later(fd));
	must_fail("fchmod()", fchmod(fd, 0666) == 0);
	must_fail("opening it again to write", can_open(path, O_RDWR));
	must_fail("opening it again to append", can_open(path, O_WRONLY | O_APPEND));
	must_fail("truncating it", truncate(path, 0) == 0 || ftruncate(fd, 0) == 0);
	must_fail("write()", write(fd, "", 1) == 1);
	must_fail("a name of its own for it",
		  linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/page", AT_SYMLINK_FOLLOW) == 0);
	must_fail("the folder that it is in", openat(fd, "..", O_PATH | O_DIRECTORY) >= 0);
}

static bool can_create(const char *path)
{
	cleanup(closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return fd >= 0;
}

/* The file that preloads libweir into every process of the container, and the folder of the agent's
 * socket. */
static void attack_mounts(void)
{
	static const char *const mounts[] = {"/etc/ld.so.preload", "/run/weir"};
	static const char limited[] = "/run/weir/" WEIR_LIMITED_NAME;
	static const char *const files[] = {"/etc/ld.so.preload", WEIR_SOCKET_PATH, limited};

	for (size_t i = 0; i < countof(mounts); i++) {
		must_fail("unmounting", umount2(mounts[i], MNT_DETACH) == 0);
		must_fail("making a mount writable",
			  mount(NULL, mounts[i], NULL, MS_REMOUNT | MS_BIND, NULL) == 0);
		must_fail("mounting over", mount("/tmp", mounts[i], NULL, MS_BIND, NULL) == 0);
	}
	for (size_t i = 0; i < countof(files); i++) {
		must_fail("removing a file", unlink(files[i]) == 0);
		must_fail("renaming a file", rename(files[i], "/run/weir/other") == 0);
	}
	must_fail("emptying ld.so.preload", can_open("/etc/ld.so.preload", O_WRONLY | O_TRUNC));
	must_fail("a file beside the socket", can_create("/run/weir/mine"));
}

/* Reaches for the agent's own folder through the descriptor of a page. */
static void attack_others(pid_t agent)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)agent);
	must_fail("the agent's root", can_open(path, O_RDONLY | O_DIRECTORY));
	must_fail("a signal to the agent", agent > 0 && kill(agent, 0) == 0);
	must_fail("the agent's state", can_open("/run/weir-agent", O_RDONLY | O_DIRECTORY));
}

/* The agent's pid in this namespace; 0: not visible. */
static pid_t peer_of(int socket)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

int main(void)
{
	int fds[WEIR_FDS_MAX];
	union weir_message welcome;
	size_t n;
	int agent = enter(&welcome, fds, &n);

	if (agent < 0) {
		printf("intruder: the agent does not let us in: %s\n", strerror(errno));
		return 2;
	}
	if (welcome.welcome.level >= WEIR_DEMAND_LEVELS) {
		printf("intruder: nobody is above level %u\n", welcome.welcome.level);
		return 2;
	}
	attack(fds[2]);
	attack_mounts();
	attack_others(peer_of(agent));
	for (size_t i = 0; i < n; i++)
		must_fail("shortening a page", ftruncate(fds[i], 0) == 0);
	if (!failures)
		printf("intruder: level %u can do no harm\n", welcome.welcome.level);
	return failures ? 1 : 0;
}
