/* compat-client SOCKET: two clients of the protocol's first version, of different levels, at
 * today's agent. Run it as root, whose level is above that of user 65534. */
#include "robustness/compat/protocol-1.h"
#include "robustness/compat/socket.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOW_UID 65534

struct old_client {
	int socket;
	struct old_welcome welcome;
	struct old_control_page *control;
	struct old_status_page *status;
	const struct old_demand_page *wait;
	struct old_demand_page *below[OLD_DEMAND_LEVELS];
};

static void take_pages(struct old_client *client, const int *fds, size_t n)
{
	size_t at = 0;

	if (n != 2u + client->welcome.level + (client->welcome.level < OLD_DEMAND_LEVELS))
		old_fail("not the descriptors of its level");
	client->control = old_map(fds[at++], PROT_READ | PROT_WRITE);
	client->status = old_map(fds[at++], PROT_READ | PROT_WRITE);
	if (client->welcome.level < OLD_DEMAND_LEVELS)
		client->wait = old_map(fds[at++], PROT_READ);
	for (unsigned level = 0; level < client->welcome.level; level++)
		client->below[level] = old_map(fds[at++], PROT_READ | PROT_WRITE);
	if (client->control->magic != OLD_MAGIC || client->control->version < OLD_VERSION ||
	    client->control->level != client->welcome.level)
		old_fail("no control page");
	client->status->magic = OLD_MAGIC;
	client->status->version = OLD_VERSION;
	client->status->level = client->welcome.level;
}

static void join(struct old_client *client, const char *path, unsigned level)
{
	struct old_hello hello = {
		.header = {OLD_MAGIC, OLD_VERSION, OLD_HELLO, sizeof(hello), 0},
		.gpu = "compat-gpu-0000",
		.claimed_bit = 0xff,
		.library = "0.0.1",
	};
	uint8_t packet[OLD_MESSAGE_MAX];
	int fds[OLD_FDS_MAX];
	size_t n;

	client->socket = old_socket(path, 0);
	old_send(client->socket, &hello, sizeof(hello), NULL, 0);
	ssize_t size = old_receive(client->socket, packet, sizeof(packet), fds, &n);
	if (size < (ssize_t)sizeof(client->welcome))
		old_fail("no answer to HELLO");
	memcpy(&client->welcome, packet, sizeof(client->welcome));
	if (client->welcome.header.magic != OLD_MAGIC || client->welcome.header.type != OLD_WELCOME)
		old_fail("not welcome");
	if (client->welcome.level != level)
		old_fail("another level than its user's");
	take_pages(client, fds, n);
}

/* The lower client sees the demand of the higher one until that one dies. */
static void be_low(const char *path, int told)
{
	struct old_client low = {0};
	char byte = 0;

	if (setgid(LOW_UID) < 0 || setuid(LOW_UID) < 0)
		old_fail("cannot become another user");
	join(&low, path, 0);
	if (low.control->above != 1)
		old_fail("nobody is above");
	low.status->launches = 7;
	if (write(told, &byte, 1) != 1)
		old_fail("cannot say so");
	for (int i = 0; i < 1000 && low.wait->word == 0; i++)
		usleep(10000);
	if (low.wait->word == 0)
		old_fail("no demand is seen");
	for (int i = 0; i < 1000 && low.wait->word != 0; i++)
		usleep(10000);
	if (low.wait->word != 0)
		old_fail("the demand of the dead stands");
	/* The agent may send unknown messages, but it has not closed the connection. */
	if (recv(low.socket, &byte, 1, MSG_DONTWAIT) == 0)
		old_fail("cut off");
	_exit(0);
}

/* Sets its demand bit and dies. */
static void be_high(struct old_client *high)
{
	for (unsigned level = 0; level < high->welcome.level; level++)
		high->below[level]->word |= 1ull << high->welcome.bit;
	high->status->launches = 1;
	high->status->outstanding = 1;
	usleep(200000);
	close(high->socket);
}

int main(int argc, char **argv)
{
	struct old_client high = {0};
	int ends[2], status = 1;
	char byte;

	if (argc != 2 || pipe2(ends, 0) < 0)
		old_fail("usage: compat-client SOCKET");
	join(&high, argv[1], 2);
	pid_t low = fork();
	if (low == 0) {
		close(high.socket); /* its death must clear its demand */
		be_low(argv[1], ends[1]);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) == 1)
		be_high(&high);
	if (waitpid(low, &status, 0) != low || status != 0)
		return 1;
	puts("compat-client: ok");
	return 0;
}
