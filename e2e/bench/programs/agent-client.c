#include "agent-client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/base.h>

#include "workload.h"

#define ANSWER_TIMEOUT_MS 120000

static int connect_agent(void)
{
	const char *path = getenv("WEIR_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!path || !*path)
		path = WEIR_SOCKET_PATH;
	if (strlen(path) >= sizeof(address.sun_path))
		workload_fail("%s: too long", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		workload_fail("%s: %s", path, strerror(errno));
	return fd;
}

/* The caller closes the descriptors. */
static void receive(const struct agent_client *client, union weir_message *message, int *fds,
		    size_t *n_fds)
{
	struct pollfd poll_socket = {client->socket, POLLIN, 0};

	for (;;) {
		int r = weir_message_receive(client->socket, message, fds, n_fds);

		if (!r)
			return;
		if (r != -EAGAIN && r != WEIR_CHECK_TYPE)
			workload_fail("the agent's message: %s",
				      r < 0 ? strerror(-r) : weir_check_text(r));
		if (poll(&poll_socket, 1, ANSWER_TIMEOUT_MS) == 0)
			workload_fail("the agent does not answer");
	}
}

static struct weir_demand_page *map_demand(int fd)
{
	void *page = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		workload_fail("a demand page: %s", strerror(errno));
	return page;
}

void agent_client_join(struct agent_client *client, CUdevice device)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE, .library = WEIR_VERSION};
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds, first;
	CUuuid gpu;

	CU(cuDeviceGetUuid(&gpu, device));
	memcpy(hello.gpu, gpu.bytes, sizeof(hello.gpu));
	*client = (struct agent_client){.socket = connect_agent()};
	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	if (weir_message_send(client->socket, &hello, sizeof(hello), NULL, 0))
		workload_fail("the agent takes no message");
	receive(client, &message, fds, &n_fds);
	if (message.header.type == WEIR_REFUSED)
		workload_fail("refused: %s", message.refused.text);
	if (message.header.type != WEIR_WELCOME)
		workload_fail("the agent's answer is of type %u", message.header.type);
	client->level = message.welcome.level;
	client->bit = message.welcome.bit;
	/* Control page, status page, the own level's demand page; then those of the lower levels.
	 */
	first = 2 + (client->level < WEIR_DEMAND_LEVELS);
	for (unsigned level = 0; level < client->level; level++)
		client->below[level] = map_demand(fds[first + level]);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}

void agent_client_demand(const struct agent_client *client, bool wanted)
{
	uint64_t bit = 1ull << client->bit;

	for (unsigned level = 0; level < client->level; level++)
		if (wanted)
			atomic_fetch_or(&client->below[level]->word, bit);
		else
			atomic_fetch_and(&client->below[level]->word, ~bit);
}

void agent_client_receive(const struct agent_client *client, enum weir_message_type type,
			  union weir_message *message, int *fd)
{
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	do {
		receive(client, message, fds, &n_fds);
		*fd = n_fds ? fds[0] : -1;
		for (size_t i = message->header.type == type; i < n_fds; i++)
			close(fds[i]);
	} while (message->header.type != type);
}
