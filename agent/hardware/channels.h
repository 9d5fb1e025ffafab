/* The compute channel groups of a GPU's clients: slices, and stops in the middle of a kernel, for
 * any kernel of any program (weir/channel-group.h).
 *
 * The functions here only say what is wanted, and return at once; a thread of the GPU makes it so
 * (channels-thread.h).
 *
 * A group comes from its client's process and is not trusted. Its descriptor is used only if it is
 * the driver's control device. Handles that are wrong end in an error of this client: its groups
 * are not used any more.
 *
 * While the agent has a process's descriptor open, the driver keeps what that process had on the
 * GPU. channels_forget() closes it: call it as soon as the process is dead. */
#pragma once

#include "hardware/channels-thread.h"

#include "weir/loop.h"

#define CHANNELS_GROUPS_MAX 8u /* of a client, unless it says another number */

/* Embedded in the client. Zeroed: it has no groups. */
struct channels_client {
	pid_t pid; /* of the process whose groups they are */
	struct channels_gpu *gpu;
	unsigned n_groups;
	unsigned max; /* groups; 0: CHANNELS_GROUPS_MAX */
	/* What is wanted. */
	uint64_t slice; /* us; 0: the driver's */
	bool stopped;
	/* As the thread found, up to the last news. */
	bool usable; /* all its groups are real, and no call failed */
	bool failed;
	uint64_t disobeyed;
	/* Called when one of the three changes. */
	void (*changed)(struct channels_client *client);
	/* Of an MPS server: tells its process until when it stays stopped; 0: it is not. */
	void (*tell_stopped)(struct channels_client *client, uint64_t until);
	uint64_t told_until;
};

/* Takes @fd. A group of a number that the client has already is replaced. The thread examines it
 * first: then changed() is called. */
void channels_take(struct channels_gpu *gpu, struct loop *loop, const uint8_t uuid[16],
		   struct channels_client *client, const struct channel_group *group, int fd);
/* Its groups go on, and are closed. */
void channels_forget(struct channels_client *client);

/* 0: as the driver has it. */
void channels_set_slice(struct channels_client *client, uint64_t us);
void channels_stop(struct channels_client *client, bool stopped);
/* ns for which its groups were not stopped, since they came; as measured. */
uint64_t channels_ran(const struct channels_client *client, uint64_t now);
/* Since when all its groups are stopped, ns; 0: they are not. */
uint64_t channels_stopped_at(const struct channels_client *client);
/* Whether the driver has stopped all its groups, or does so now. A stop or a go-on that the thread
 * has not begun can still be taken back, and does not count. */
bool channels_stays_stopped(const struct channels_client *client);
/* Its groups run although they are stopped. */
void channels_stop_again(struct channels_client *client);

struct channels_counters channels_count(struct channels_gpu *gpu);
/* Lets all groups go on, waits for the thread, and closes everything. */
void channels_deinit(struct channels_gpu *gpu);
