/* File leases. Who opens a leased file waits until the lease's holder gives it up, or for 45 s. A
 * lease on a file that one may only read needs no right but to own it, and root in a container owns
 * what root of the node owns. */
#include "robustness/hostile/siege.h"
#include "robustness/hostile/kernel.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weir/base.h"

#define FILES_MAX  32
#define RETRY_US   200
#define BEREAVED_S 20 /* it lies in wait for another agent so long */

struct prey {
	int fds[FILES_MAX];
	size_t n;
};

/* As root in an unprivileged container: the owner of the files, but without CAP_LEASE. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};

	if (syscall(SYS_capset, &header, none) < 0)
		cannot("drop capabilities");
}

static void add(struct prey *prey, int fd)
{
	if (fd >= 0 && prey->n < FILES_MAX)
		prey->fds[prey->n++] = fd;
}

static void add_path(struct prey *prey, const char *path)
{
	add(prey, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* The preload file, what it names, and the mark of nodes with limits. WEIR_SHARED_FILES names
 * others, by colons. */
static void add_shared_files(struct prey *prey)
{
	char line[512], *more = getenv("WEIR_SHARED_FILES");
	FILE *list = fopen("/etc/ld.so.preload", "re");

	add_path(prey, "/etc/ld.so.preload");
	while (list && fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		add_path(prey, line);
	}
	if (list)
		fclose(list);
	add_path(prey, "/run/weir/" WEIR_LIMITED_NAME);
	for (char *path = more ? strtok(more, ":") : NULL; path; path = strtok(NULL, ":"))
		add_path(prey, path);
}

/* The pages of an account and of a client. The agent has them open while it lives. Returns the
 * client's socket. */
static int add_pages(struct prey *prey)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	if (client_account(&message, fds, &n))
		for (size_t i = 0; i < n; i++)
			add(prey, fds[i]);
	int socket = client_join(&message, fds);
	for (size_t i = 0; socket >= 0 && i < welcome_fds(&message); i++)
		add(prey, fds[i]);
	return socket;
}

static unsigned take_leases(const struct prey *prey)
{
	unsigned taken = 0;

	for (size_t i = 0; i < prey->n; i++) {
		/* One that is being broken is not given up. */
		if (fcntl(prey->fds[i], F_SETLEASE, F_WRLCK) == 0 ||
		    fcntl(prey->fds[i], F_SETLEASE, F_RDLCK) == 0)
			taken++;
	}
	return taken;
}

/* As long as the agent lives, and when it is gone: another one will open the pages. */
void siege_lease(void)
{
	struct prey prey = {.n = 0};
	uint64_t end = UINT64_MAX;
	bool waiting = false;

	drop_capabilities();
	signal(SIGIO, SIG_IGN);
	add_shared_files(&prey);
	struct pollfd agent = {.fd = add_pages(&prey), .events = POLLIN};
	siege_ready();
	while (clock_ms() < end) {
		unsigned taken = take_leases(&prey);
		if (end == UINT64_MAX && poll(&agent, 1, 0) == 1)
			end = clock_ms() + BEREAVED_S * 1000;
		if (end != UINT64_MAX && taken && !waiting) {
			printf("the agent is gone: %u leases\n", taken);
			fflush(stdout);
			waiting = true;
		}
		usleep(RETRY_US);
	}
}

/* Each hit of the cache opens the object. */
void siege_object(void)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX], object = -1;
	size_t n = 0;

	drop_capabilities();
	signal(SIGIO, SIG_IGN);
	int socket = client_join(&message, fds);
	if (socket < 0)
		cannot("join");
	for (uint32_t id = 0;; id++) {
		kernel_ask(socket, id, KERNEL_COMMON);
		do {
			if (!client_hear(socket, &message, fds, &n, 60000))
				cannot("hear of the object");
		} while (message.header.type != WEIR_COMPILED);
		if (n > 0) {
			int old = object;
			object = fds[0];
			if (fcntl(object, F_SETLEASE, F_WRLCK) < 0)
				fcntl(object, F_SETLEASE, F_RDLCK);
			if (old >= 0)
				close(old);
			siege_ready();
		}
		usleep(20000);
	}
}
