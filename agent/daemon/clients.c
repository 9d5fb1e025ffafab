#include "daemon/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "scheduler/preemption.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"

/* The pages that belong to a level, in the order of the protocol. */
static size_t level_fds(const struct gpu *gpu, uint8_t level, int *fds)
{
	size_t n = 0;

	if (level < WEIR_DEMAND_LEVELS)
		fds[n++] = gpu->region.pages[level].readonly;
	for (uint8_t below = 0; below < level; below++)
		fds[n++] = gpu->region.pages[below].writable;
	return n;
}

int clients_welcome(struct client *client)
{
	struct weir_welcome message = {
		.level = client->level, .bit = client->bit, .client = client->number};
	int fds[WEIR_FDS_MAX] = {client->pages.control_fd, client->pages.status_fd};
	size_t n = 2 + level_fds(client->gpu, client->level, fds + 2);

	weir_header_init(&message.header, WEIR_WELCOME, sizeof(message));
	int r = weir_message_send(client->socket, &message, sizeof(message), fds, n);
	region_pages_close(&client->pages);
	return r;
}

void clients_cut_off(const struct client *client, const char *what, int r)
{
	log_warning("client %llu does not take %s: %s", (unsigned long long)client->number, what,
		    strerror(-r));
	shutdown(client->socket, SHUT_RDWR);
}

static void send_level(const struct client *client)
{
	struct weir_level message = {.level = client->level,
				     .bit = client->takes_bit ? (uint8_t)(client->bit + 1) : 0};
	int fds[WEIR_FDS_MAX];
	size_t n = level_fds(client->gpu, client->level, fds);

	weir_header_init(&message.header, WEIR_LEVEL, sizeof(message));
	int r = weir_message_send(client->socket, &message, sizeof(message), fds, n);
	if (r < 0)
		clients_cut_off(client, "its new level", r);
}

/* Strings of a client are shown to people: no byte of them may control a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void read_command(pid_t pid, char *out, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	ssize_t n = file_read(AT_FDCWD, path, out, size);
	out[n > 0 ? n - 1 : 0] = '\0'; /* its last byte is a newline */
	make_printable(out);
}

int clients_add(struct clients *clients, const struct newcomer *new, struct client **out)
{
	const struct weir_hello *hello = new->hello;
	struct tenant *tenant = new->tenant;
	struct usage *usage = tenant_usage(tenant, new->gpu);
	struct client *client = usage ? calloc(1, sizeof(*client)) : NULL;

	if (!client)
		return error_origin(-ENOMEM);
	int r = region_pages_init(&client->pages);
	if (r < 0) {
		free(client);
		return r;
	}
	client->number = ++clients->last_number;
	client->tenant = tenant;
	client->socket = new->socket;
	client->pid = new->pid;
	client->process = new->process;
	client->context = hello->context;
	client->takes_bit = hello->flags & WEIR_HELLO_TAKES_BIT;
	client->takes_pipes = hello->flags & WEIR_HELLO_TAKES_PIPES;
	client->takes_profiles = hello->flags & WEIR_HELLO_TAKES_PROFILES;
	client->says_whole = hello->flags & WEIR_HELLO_SAYS_WHOLE;
	client->comes_concurrent = hello->flags & WEIR_HELLO_CONCURRENT;
	client->tell_level = send_level;
	client->level = client->first_level = usage->granted = tenant->level;
	memcpy(client->library, hello->library, sizeof(client->library));
	make_printable(client->library);
	read_command(new->pid, client->command, sizeof(client->command));
	atomic_store(&client->pages.control->level, client->level);
	atomic_store(&client->pages.control->memory_limit,
		     decider_memory_limit(clients->decider, tenant, new->gpu, NULL));
	gpu_add(new->gpu, client, hello->claimed_bit);
	DL_APPEND2(tenant->clients, client, tenant_prev, tenant_next);
	scheduler_add(clients->scheduler, client);
	*out = client;
	return 0;
}

static void channels_changed(struct channels_client *channels)
{
	struct client *client = container_of(channels, struct client, channels);

	if (channels->usable)
		log_debug("client %llu has hardware preemption",
			  (unsigned long long)client->number);
	scheduler_change(client->gpu->scheduler, client->gpu);
}

void clients_take_channels(struct clients *clients, struct client *client,
			   const struct channel_group *group, int fd)
{
	struct gpu *gpu = client->gpu;

	client->channels.pid = client->pid;
	client->channels.changed = channels_changed;
	channels_take(&gpu->channels, clients->loop, gpu->uuid, &client->channels, group, fd);
}

void clients_remove(struct clients *clients, struct client *client)
{
	struct tenant *tenant = client->tenant;

	if (client->preemption.frozen)
		preemption_hold(client, false, loop_now());
	channels_forget(&client->channels);
	client_read(client);
	client_count_hold(client, false, loop_now());
	scheduler_remove(client);
	gpu_remove(client->gpu, client, clients->stopping);
	DL_DELETE2(tenant->clients, client, tenant_prev, tenant_next);
	if (!clients->stopping)
		scheduler_change(clients->scheduler, client->gpu);
	region_pages_deinit(&client->pages);
	free(client);
}
