/* Floods: connections and messages. */
#include "robustness/hostile/client.h"
#include "robustness/hostile/siege.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS      600
#define ALLOWED          64 /* limits.clientsPerContainer */
#define FLOODERS         8
#define FLOOD_MS         2000
#define RATE             1024 /* messages a second that the agent reads from one client, at most */
#define KEPT_IN_A_SOCKET 1024 /* messages that the kernel queues for it */

/* Runs @attack as the hostile user; the caller keeps its user. */
static pid_t run_hostile(void (*attack)(void *), void *argument)
{
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child > 0)
		return child;
	become(HOSTILE_UID);
	attack(argument);
	exit(0);
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void must_live(pid_t child)
{
	int status;

	if (waitpid(child, &status, WNOHANG) != 0)
		harm("the attack ended early (status %d)", status);
}

struct crowd {
	_Atomic unsigned let_in, refused;
	_Atomic bool complete;
};

static void *shared(size_t size)
{
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		cannot("map memory");
	return page;
}

/* Opens as many clients as the agent accepts; all stay connected. */
static void come_in_a_crowd(void *argument)
{
	struct crowd *crowd = argument;
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];

	for (int i = 0; i < CONNECTIONS; i++) {
		if (client_join(&welcome, fds) < 0) {
			crowd->refused++;
			continue;
		}
		crowd->let_in++;
		close_fds(fds, welcome_fds(&welcome));
	}
	crowd->complete = true;
	pause();
}

void attack_connections(void)
{
	struct crowd *crowd = shared(sizeof(*crowd));
	pid_t child = run_hostile(come_in_a_crowd, crowd);

	while (!crowd->complete) {
		must_live(child);
		usleep(10000);
	}
	if (crowd->let_in != ALLOWED || crowd->refused != CONNECTIONS - ALLOWED)
		harm("%u connections of one container were let in, %u refused", crowd->let_in,
		     crowd->refused);
	if (!bystander_gets_in(3))
		harm("another container does not get in beside %u connections", crowd->let_in);
	end(child);
}

struct torrent {
	_Atomic uint64_t sent;
	_Atomic bool begun;
};

/* Valid messages that the agent has to process. */
static void pour(void *argument)
{
	struct torrent *torrent = argument;
	struct weir_hello message = client_hello();
	union weir_message welcome;
	int fds[WEIR_FDS_MAX], sockets[FLOODERS];

	for (int i = 0; i < FLOODERS; i++)
		if ((sockets[i] = client_join(&welcome, fds)) < 0)
			cannot("join");
	message.header.type = 77;
	torrent->begun = true;
	for (unsigned i = 0;; i++) {
		int r = weir_message_send(sockets[i % FLOODERS], &message, sizeof(message), NULL,
					  0);
		if (r == 0)
			torrent->sent++;
		else if (r == -EPIPE)
			cannot("go on: cut off");
	}
}

void siege_flood(void)
{
	struct torrent torrent = {.begun = false};

	siege_ready();
	pour(&torrent);
}

void attack_flood(void)
{
	struct torrent *torrent = shared(sizeof(*torrent));
	pid_t child = run_hostile(pour, torrent);
	uint64_t began;

	while (!torrent->begun) {
		must_live(child);
		usleep(1000);
	}
	began = clock_ms();
	while (clock_ms() - began < FLOOD_MS)
		if (!bystander_gets_in(10))
			harm("another container does not get in under a flood of messages");
	must_live(child);
	uint64_t seconds = (clock_ms() - began) / 1000 + 1;
	uint64_t sent = torrent->sent;
	end(child);
	printf("# %llu messages in %llu s\n", (unsigned long long)sent,
	       (unsigned long long)seconds);
	if (sent > FLOODERS * (RATE * seconds + KEPT_IN_A_SOCKET))
		harm("the agent took %llu messages of %d connections in %llu s",
		     (unsigned long long)sent, FLOODERS, (unsigned long long)seconds);
}
