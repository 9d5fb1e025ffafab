#include "weir/protocol.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What a type of message needs. Sizes are version 1's: a later sender may send more, never less. */
static const struct {
	size_t size;
	size_t fds_min, fds_max;
} shapes[] = {
	[WEIR_HELLO] = {sizeof(struct weir_hello), 0, 0},
	[WEIR_WELCOME] = {sizeof(struct weir_welcome), 3, 6},
	[WEIR_LEVEL] = {sizeof(struct weir_level), 1, 4},
	[WEIR_REFUSED] = {sizeof(struct weir_refused), 0, 0},
	[WEIR_COMPILE] = {sizeof(struct weir_compile), 1, 1},
	[WEIR_COMPILED] = {sizeof(struct weir_compiled), 0, 1},
	[WEIR_MEMORY] = {sizeof(struct weir_memory), 0, 0},
	[WEIR_ACCOUNT] = {sizeof(struct weir_account), 2, 2},
	[WEIR_WORK] = {sizeof(struct weir_work), 0, 0},
	[WEIR_CHANNELS] = {sizeof(struct weir_channels), 1, 1},
	[WEIR_PIPES] = {sizeof(struct weir_pipes), 0, 0},
	[WEIR_PIPES_ANSWER] = {sizeof(struct weir_pipes_answer), 0, 1},
	[WEIR_STOPPED] = {sizeof(struct weir_stopped), 0, 0},
	[WEIR_MEMORY_WAITS] = {sizeof(struct weir_memory_waits), 0, 0},
	[WEIR_PROFILE] = {sizeof(struct weir_profile_message), 0, 0},
	[WEIR_LEARNED] = {sizeof(struct weir_learned), 0, 0},
};
static_assert(sizeof(union weir_message) == WEIR_MESSAGE_MAX, "every message fits");

/* A level's pages: the read-only one that it waits for, unless it is the top, and one for each
 * below. */
static size_t level_fds(unsigned level)
{
	return level + (level < WEIR_DEMAND_LEVELS ? 1 : 0);
}

static enum weir_check check_fields(union weir_message *message, size_t fds)
{
	uint32_t n;

	switch (message->header.type) {
	case WEIR_HELLO:
		message->hello.library[sizeof(message->hello.library) - 1] = '\0';
		if (message->hello.claimed_bit > WEIR_BIT_SHARED &&
		    message->hello.claimed_bit != WEIR_BIT_NONE)
			return WEIR_CHECK_VALUE;
		return WEIR_CHECK_OK;
	case WEIR_WELCOME:
		if (message->welcome.level >= WEIR_LEVELS || message->welcome.bit > WEIR_BIT_SHARED)
			return WEIR_CHECK_VALUE;
		return fds == 2 + level_fds(message->welcome.level) ? WEIR_CHECK_OK
								    : WEIR_CHECK_FDS;
	case WEIR_LEVEL:
		if (message->level.level >= WEIR_LEVELS || message->level.bit > WEIR_BIT_SHARED + 1)
			return WEIR_CHECK_VALUE;
		return fds == level_fds(message->level.level) ? WEIR_CHECK_OK : WEIR_CHECK_FDS;
	case WEIR_COMPILE:
	case WEIR_MEMORY:
	case WEIR_MEMORY_WAITS:
	case WEIR_WORK:
	case WEIR_PIPES:
	case WEIR_STOPPED:
	case WEIR_LEARNED: /* weir_profile_is_sane() is the agent's to ask */
		return WEIR_CHECK_OK;
	case WEIR_PROFILE:
		return message->profile.n <= WEIR_PROFILE_ENTRIES ? WEIR_CHECK_OK
								  : WEIR_CHECK_VALUE;
	case WEIR_PIPES_ANSWER:
		if (message->pipes_answer.level >= WEIR_LEVELS)
			return WEIR_CHECK_VALUE;
		return fds == (message->pipes_answer.status == WEIR_PIPES_OK) ? WEIR_CHECK_OK
									      : WEIR_CHECK_FDS;
	case WEIR_CHANNELS:
		n = message->channels.group.n_channels;
		return n && n <= CHANNEL_GROUP_CHANNELS ? WEIR_CHECK_OK : WEIR_CHECK_VALUE;
	case WEIR_ACCOUNT:
		return message->account.slot < WEIR_MEMORY_SLOTS ? WEIR_CHECK_OK : WEIR_CHECK_VALUE;
	case WEIR_COMPILED:
		message->compiled.text[sizeof(message->compiled.text) - 1] = '\0';
		return fds == (message->compiled.status == WEIR_COMPILE_OK) ? WEIR_CHECK_OK
									    : WEIR_CHECK_FDS;
	default:
		message->refused.text[sizeof(message->refused.text) - 1] = '\0';
		return WEIR_CHECK_OK;
	}
}

enum weir_check weir_message_check(union weir_message *out, const void *packet, size_t size,
				   size_t fds)
{
	union weir_message message = {0};

	if (size > WEIR_MESSAGE_MAX)
		return WEIR_CHECK_LONG;
	if (size < sizeof(message.header))
		return WEIR_CHECK_SHORT;
	memcpy(&message, packet, size);

	if (message.header.magic != WEIR_PROTOCOL_MAGIC)
		return WEIR_CHECK_MAGIC;
	if (message.header.version == 0)
		return WEIR_CHECK_VERSION;
	if (message.header.size > size)
		return WEIR_CHECK_SHORT;
	if (message.header.size < size)
		return WEIR_CHECK_LONG;
	if (message.header.type < WEIR_HELLO || message.header.type > WEIR_LEARNED)
		return WEIR_CHECK_TYPE;
	if (size < shapes[message.header.type].size)
		return WEIR_CHECK_SHORT;
	if (fds < shapes[message.header.type].fds_min || fds > shapes[message.header.type].fds_max)
		return WEIR_CHECK_FDS;

	enum weir_check check = check_fields(&message, fds);
	if (check == WEIR_CHECK_OK)
		*out = message;
	return check;
}

const char *weir_check_text(enum weir_check check)
{
	static const char *const texts[] = {
		[WEIR_CHECK_OK] = "well-formed",
		[WEIR_CHECK_SHORT] = "message too short",
		[WEIR_CHECK_LONG] = "message too long",
		[WEIR_CHECK_MAGIC] = "not a Weir message",
		[WEIR_CHECK_VERSION] = "impossible protocol version",
		[WEIR_CHECK_TYPE] = "unknown message type",
		[WEIR_CHECK_VALUE] = "field out of range",
		[WEIR_CHECK_FDS] = "wrong number of file descriptors",
	};

	return texts[check];
}

#define BLOCK_MAX   1024u            /* threads */
#define SHARED_MAX  (1u << 20)       /* bytes */
#define SMS_MAX     4096u            /* of a GPU */
#define TIME_MAX    3600000000000ull /* ns */
#define RATIO_MAX   100000000u       /* a hundred times as long as natively */
#define BUILD_MAX   15u
#define LATENCY_MAX (TIME_MAX / 1000)

/* The product of three, or 0 if it exceeds @most. */
static uint64_t volume(const uint32_t size[3], uint64_t most)
{
	uint64_t product = 1;

	for (int i = 0; i < 3; i++) {
		product *= size[i];
		if (product > most)
			return 0;
	}
	return product;
}

static bool is_choice_sane(const struct weir_profile_choice *choice)
{
	static const struct weir_profile_choice native;
	unsigned flags = WEIR_PROFILE_AHEAD | WEIR_PROFILE_APART;

	if (!choice->form)
		return memcmp(choice, &native, sizeof(native)) == 0;
	return choice->form < WEIR_STATUS_FORMS && choice->build <= BUILD_MAX &&
	       !(choice->flags & ~flags) && !choice->reserved0 && choice->chunk &&
	       choice->chunk <= INT32_MAX && choice->workers && choice->workers <= INT32_MAX &&
	       choice->ratio && choice->ratio <= RATIO_MAX;
}

bool weir_profile_is_sane(const struct weir_profile *profile)
{
	const struct weir_profile_geometry *geometry = &profile->geometry;

	for (int i = 0; i < WEIR_PROFILE_CHOICES; i++)
		if (!is_choice_sane(&profile->choices[i]))
			return false;
	return volume(geometry->grid, INT32_MAX) && volume(geometry->block, BLOCK_MAX) &&
	       geometry->shared <= SHARED_MAX && geometry->sms && geometry->sms <= SMS_MAX &&
	       geometry->latency && geometry->latency <= LATENCY_MAX && !geometry->reserved0 &&
	       profile->native && profile->native <= TIME_MAX &&
	       profile->eviction_cost <= TIME_MAX && profile->yields <= WEIR_YIELDS_WHOLE;
}

void weir_header_init(struct weir_header *header, enum weir_message_type type, size_t size)
{
	*header = (struct weir_header){
		.magic = WEIR_PROTOCOL_MAGIC,
		.version = WEIR_PROTOCOL_VERSION,
		.type = (uint16_t)type,
		.size = (uint32_t)size,
	};
}

int weir_message_send(int socket, const void *message, size_t size, const int *fds, size_t n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(WEIR_FDS_MAX * sizeof(int))] = {0};
	struct iovec data = {.iov_base = (void *)message, .iov_len = size};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};

	if (size > WEIR_MESSAGE_MAX || n_fds > WEIR_FDS_MAX)
		return -EMSGSIZE;
	if (n_fds) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
	}

	ssize_t sent;
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* The descriptors of a received packet, from all of its control messages. */
static size_t collect_fds(struct msghdr *header, int *fds)
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (n < WEIR_FDS_MAX)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
	return n;
}

int weir_message_receive(int socket, union weir_message *out, int *fds, size_t *n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(WEIR_FDS_MAX * sizeof(int))];
	uint8_t packet[WEIR_MESSAGE_MAX];
	struct iovec data = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr header = {.msg_iov = &data,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(control)};
	ssize_t size;

	do
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;

	size_t n = collect_fds(&header, fds);
	/* On this kind of socket an empty packet means end of file. */
	if (size == 0 && n == 0)
		return -EPIPE;

	enum weir_check check = header.msg_flags & MSG_TRUNC ? WEIR_CHECK_LONG
				: header.msg_flags & MSG_CTRUNC
					? WEIR_CHECK_FDS
					: weir_message_check(out, packet, (size_t)size, n);
	if (check != WEIR_CHECK_OK) {
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		return (int)check;
	}
	*n_fds = n;
	return 0;
}
