#include "client/channels.h"

#include "shim/ioctl.h"

#include "weir/log.h"
#include "weir/protocol.h"

/* The next group whose descriptor is still what libcuda opened. */
static bool next(const struct client *client, size_t *at, struct channel_group *group, int *fd)
{
	while (channel_groups_next(client->context, at, group, fd))
		if (channel_group_is_device(*fd))
			return true;
	return false;
}

int channels_tell(const struct client *client, int socket)
{
	struct weir_channels message = {0};
	size_t at = 0;
	int fd, r = 0;

	weir_header_init(&message.header, WEIR_CHANNELS, sizeof(message));
	while (r == 0 && next(client, &at, &message.group, &fd))
		r = weir_message_send(socket, &message, sizeof(message), &fd, 1);
	return r;
}

void channels_go_on(const struct client *client)
{
	struct channel_group group;
	size_t at = 0;
	int fd;

	while (next(client, &at, &group, &fd)) {
		int r = channel_group_stop(fd, &group, false);
		r = r ? r : channel_group_set_slice(fd, &group, CHANNEL_GROUP_SLICE);
		if (r)
			log_limited(LOG_WARNING, 60, "a channel group cannot be let go: %d", r);
	}
}
