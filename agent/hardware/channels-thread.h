/* A thread for the driver's calls about the channel groups of one GPU. They take up to a
 * millisecond and may wait for the driver's lock. The event loop writes what is wanted of each
 * group; the thread makes it so, the latest wish only. Groups that go on come first, then those
 * that stop, then slices. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "weir/channel-group.h"
#include "weir/loop.h"

#define CHANNELS_DEFAULT_SLICE CHANNEL_GROUP_SLICE
#define CHANNELS_ASK_NS        1000000000ull /* how often short slices are read back */

struct channels_client;

struct channels_group {
	struct channels_group *prev, *next;
	/* Never change. */
	int fd;
	pid_t pid; /* of its process */
	struct channel_group ids;
	/* NULL: the group is to go on, and to be closed. */
	struct channels_client *client;
	struct {
		uint64_t slice; /* us */
		bool stopped;
	} wanted, is;
	bool stays; /* stopped, once the call that the thread makes now has returned */
	bool examined, failed, told;
	bool stuck; /* the call that was to let it go on failed */
	bool again; /* its process has let it go on: it is to be stopped again */
	/* ns for which it was not stopped, up to its last stop; since when it is not. A call counts
	 * when it returns. */
	uint64_t ran, runs_since;
	uint64_t stopped_at; /* ns, when the call that stopped it returned */
	int error;           /* of the call that failed; as channel-group.h returns it */
	uint64_t asked;      /* ns, when its slice was set or read last */
	uint64_t disobeyed;
};

/* Of the thread, since the agent began. */
struct channels_counters {
	uint64_t calls, call_time; /* ns */
	uint64_t stops;
	uint64_t refused;   /* descriptors and handles that were none */
	uint64_t disobeyed; /* slices that a process had changed by itself */
};

struct channels_gpu {
	struct loop *loop; /* NULL: never had groups */
	uint8_t uuid[16];
	pthread_t thread;
	struct loop_io news;  /* eventfd: a group was examined, has failed, or has disobeyed */
	pthread_mutex_t lock; /* of all that follows; never held over a call of the driver */
	pthread_cond_t wake;
	bool ends;
	struct channels_group *groups;
	struct channels_counters counters;
};

/* The body. @argument: struct channels_gpu. Returns when that ends and all groups are closed. */
void *channels_thread(void *argument);
