/* Hidden switches. Under time-slicing the GPU takes about 0.2 ms to switch from another client's
 * channel group to ours (H200), and it begins when our group has work. So where the program says
 * that a launch comes, a small kernel of our own goes ahead of it: the switch is over when the
 * launch comes.
 *
 * A group without work gives the GPU back at once. So the kernel's one thread reads a word of host
 * memory until the launch has come. It stands in the stream into which the launch will come, and
 * ends as soon as the launch is queued behind it.
 *
 * It pays only if the launch comes before our group is on the GPU. Measured on an H100 beside
 * torch.mm, against a launch alone: a launch 0.2 ms after the hint took 90 us longer (270 us
 * without the kernel). A launch 0.3 ms after the hint, or later, took 450 us longer: work that
 * comes while the group runs, in this channel or another one, begins only at the group's next turn.
 * So for a launch that is expected later than EXPECT_MAX, the kernel is put EXPECT_MAX before that
 * time, by the worker; until then demand is shown. The worker sleeps until WORKER_SPIN before, and
 * yields its processor from there. So a launch 0.5 ms after the hint took 98 us longer (in the
 * worst 1 % 265).
 *
 * A plan is dropped by all that lets the GPU go: a launch that came sooner, calls that wait or
 * copy, a stream or context that ends, a capture. A thread that drops it may meet the worker that
 * puts the kernel. So the worker takes the plan, says that the GPU is held, and then looks whether
 * somebody has let it go meanwhile (`ends`). A thread that lets the GPU go takes the plan, counts
 * in `ends`, and then looks whether the GPU is held. So at least one of them sees the other, and
 * the kernel does not wait for nothing. A thread that ends the stream or its context also calls
 * worker_grace(), so that the worker is done with it.
 *
 * It does not run in a busy stream, where no lower-level client shares the GPU, where a gate of
 * ours would be closed, under MPS, where nothing is switched, or beside captures. There is one at a
 * time. After one to which no launch came there is none for four times as long. It takes no more
 * from lower levels than ordinary kernels of this client can. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"

#define EXPECT_MAX  (250 * NS_PER_US) /* from the kernel to the launch, as the program says */
#define EXPECT_LATE (100 * NS_PER_US) /* a kernel that comes later than planned is not put */

/* $WEIR_EXPECT: what weir_expect() does. */
enum expect_way {
	EXPECT_KERNEL, /* "kernel": shows demand, and keeps the GPU */
	EXPECT_DEMAND, /* "demand": shows demand */
	EXPECT_OFF,    /* "off": nothing */
};

enum expect_state {
	EXPECT_NONE,   /* nothing was expected yet */
	EXPECT_WANTED, /* the worker makes ready when nothing runs in the context */
	EXPECT_READY,
	EXPECT_REFUSED, /* the driver lacks something */
};

/* Parameters of the kernel. */
struct expect_params {
	CUdeviceptr released;
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
	_Atomic uint32_t ends;    /* how often it was let go */
	_Atomic uint64_t planned; /* ns, when the worker is to begin one; 0: never */
	_Atomic(struct stream *) planned_in;
	/* Number of the newest kernel that need not wait; host memory that the GPU reads. */
	_Atomic uint32_t *released;
	CUdeviceptr released_gpu;
	CUfunction kernel;
};
PER_CLIENT(expecting)

enum expect_way expect_way(void);

/* Any thread, with the client's context current: a launch is expected in @stream within @ns. What
 * was planned before is dropped. */
void expect_begin(struct stream *stream, const struct level_binding *binding, uint64_t ns);

/* How often clients of the process keep the GPU, or plan to. */
extern _Atomic uint32_t expect_holding;

/* Lets the GPU go, and drops what is planned. @came: the launch is in its stream. */
void expect_end(struct client *client, bool came);

/* Launch path, after the driver's call: earlier, our group would be without work for a moment. */
static inline void expect_launched(struct client *client)
{
	if (load_relaxed(&expect_holding))
		expect_end(client, true);
}

/* Before a call that waits for the client's work, or comes before the launch: it would wait for
 * what keeps the GPU, too. Hooks that do not know the client call driver_waits(). */
static inline void expect_synchronizes(struct client *client)
{
	if (load_relaxed(&expect_holding))
		expect_end(client, false);
}

/* Columns of the table. */
void expect_settings(void);
void expect_init(struct client *client);
void expect_stream_gone(struct stream *stream);
void expect_look(struct client *client, struct tick *tick);
void expect_drive(struct client *client, struct tick *tick);
void expect_work(struct client *client, struct tick *tick);
void expect_forget(struct client *client);
void expect_stop(struct client *client);
void expect_fork(void);
