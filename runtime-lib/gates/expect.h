/* Hidden switches. Under time-slicing the GPU takes about 0.2 ms to switch from another client's
 * channel group to ours (H200), and it begins when our group has work. So where work is expected,
 * a small piece of work of our own goes ahead of it, in a private stream: the switch is over when
 * the kernel comes.
 *
 * A group without work gives the GPU back at once. So the piece is a kernel of one thread. It reads
 * a word of host memory until the launch has come, for 1 ms at most. It does not run where no
 * lower-level client shares the GPU, under MPS, where nothing is switched, or beside captures.
 * There is one at a time. After one to which no launch came there is none for four times as long.
 * It takes no more from lower levels than ordinary kernels of this client could. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"

#define EXPECT_MAX NS_PER_MS /* ns that the GPU is kept */

/* $WEIR_EXPECT. All show demand. */
enum expect_way {
	EXPECT_DEMAND, /* "demand": and do nothing else */
	EXPECT_WRITE,  /* "write": a stream's write to memory, which keeps nothing */
	EXPECT_MEMSET, /* "memset": the same by the compute engine */
	EXPECT_KERNEL, /* "kernel": the one that waits */
	EXPECT_OFF,    /* "off": weir_expect() does nothing, not even show demand */
};

enum expect_state {
	EXPECT_NONE,   /* nothing was expected yet */
	EXPECT_WANTED, /* the worker makes ready when nothing runs in the context */
	EXPECT_READY,
	EXPECT_REFUSED, /* the driver lacks something */
};

/* What the kernel and we tell each other; host memory, each on a cache line of its own. */
struct expect_words {
	_Atomic uint32_t released; /* number of the newest kernel that need not wait */
	uint8_t reserved[60];
	_Atomic uint32_t done; /* number of the newest one that has ended; the GPU writes it */
};

/* Of the kernel. */
struct expect_params {
	CUdeviceptr words;
	uint32_t number;
	uint64_t span; /* ns that it waits at most */
};

struct expecting {
	_Atomic int state;           /* enum expect_state */
	_Atomic int beginning;       /* a thread begins one */
	_Atomic uint32_t begun;      /* number of the newest one */
	_Atomic uint32_t held;       /* number of the one that waits for a launch; 0: none */
	_Atomic uint64_t since;      /* ns, when it began */
	_Atomic uint64_t until;      /* ns, when it is let go */
	_Atomic uint64_t not_before; /* ns, when there may be another one */
	_Atomic uint64_t misses;
	struct expect_words *words;
	CUdeviceptr words_gpu;
	CUstream stream;
	CUfunction kernel; /* EXPECT_KERNEL */
};
PER_CLIENT(expecting)

enum expect_way expect_way(void);

/* Any thread, with the client's context current: a launch is expected within @ns. */
void expect_begin(struct client *client, const struct level_binding *binding, uint64_t ns);

extern _Atomic uint32_t expect_holding; /* clients of the process that keep the GPU */

/* Lets the GPU go. @came: the launch is in its stream. */
void expect_end(struct client *client, bool came);

/* Launch path, after the driver's call: earlier, our group would be without work for a moment. */
static inline void expect_launched(struct client *client)
{
	if (load_relaxed(&expect_holding))
		expect_end(client, true);
}

/* Before a call that waits for the whole context: it would wait for what keeps the GPU, too. */
static inline void expect_synchronizes(struct client *client)
{
	if (load_relaxed(&expect_holding))
		expect_end(client, false);
}

/* Columns of the table. */
void expect_settings(void);
void expect_init(struct client *client);
void expect_look(struct client *client, struct tick *tick);
void expect_drive(struct client *client, struct tick *tick);
void expect_work(struct client *client, struct tick *tick);
void expect_forget(struct client *client);
void expect_stop(struct client *client);
void expect_fork(void);
