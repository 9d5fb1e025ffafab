/* The layout of the shared file, and its lock. Private to this folder. */
#pragma once

#include "simcuda/machine/machine.h"

#include <stdatomic.h>

#define MOVE_WAIT_NS 20000000u /* then: are the owners of earlier kernels alive? */

#define SHARED_MAGIC 0x354d4953u /* "SIM5" */

#define SHARED_PERIODS 8u /* that are kept, the present one among them */

struct shared_period {
	uint64_t number, us; /* for which it ran */
};

/* use.c's. */
struct shared_use {
	uint64_t since; /* us; it is counted up to then */
	struct shared_period periods[SHARED_PERIODS];
};

/* A channel group of a process, or its membership in another process's group, the leader. Groups
 * are numbered through all processes: process * MACHINE_GROUPS + index. */
struct shared_group {
	uint32_t users; /* contexts */
	uint32_t named; /* an object of the resource manager names it */
	uint32_t leader, gpu;
	uint32_t queued;             /* kernels with unstarted blocks */
	uint32_t blocks;             /* started, not ended */
	uint32_t placed;             /* those on a slot */
	uint32_t faults_before;      /* of the leader, when this group joined */
	_Atomic uint32_t terminated; /* by its server */
	struct shared_use use;
	/* Of a leader: */
	_Atomic uint32_t faults;  /* hits of all members; at least 1 while it lives */
	_Atomic uint32_t stopped; /* a futex */
	uint64_t slice;           /* nanoseconds */
};

/* What the resource manager's handle @handle of client @client means. Class 0: a free entry. */
struct shared_object {
	uint32_t client, handle, parent, class;
	uint32_t gpu;
	uint32_t engine;        /* of a channel group */
	uint32_t group;         /* of a compute channel group: index + 1 in its process */
	uint32_t disabled;      /* a channel */
	uint64_t device, inode; /* of a client: the descriptor that it belongs to */
};

struct shared_process {
	uint32_t role;               /* 0: free */
	_Atomic uint32_t generation; /* how often the entry was claimed */
	uint32_t joined;             /* the generation that wrote the other fields */
	uint32_t pid;                /* in its own namespace */
	uint32_t touched;            /* bit g: has a context on GPU g */
	uint64_t memory[MACHINE_GPUS];
	struct shared_group groups[MACHINE_GROUPS];
	uint64_t pipes_device, pipes_inode; /* of a server of MPS */
	uint32_t objects;                   /* entries of its row that may be in use */
	_Atomic uint32_t slots;             /* it has this many at most on a GPU (MPS); 0: all */
};

struct shared_kernel {
	uint32_t owner; /* process + 1 */
	uint32_t group; /* of the owner */
	uint64_t cookie;
	uint64_t ticket;
	uint64_t unstarted;
	int32_t priority;     /* the least goes first, as in CUDA */
	uint32_t cooperative; /* its blocks wait for each other */
	uint64_t begun;       /* cooperative, and some of its blocks have begun */
};

struct shared_gpu {
	_Atomic uint32_t sequence; /* a futex: counts moves of the queue */
	_Atomic uint32_t waiting;  /* somebody may sleep on it */
	uint64_t head, tail;
	uint64_t tickets;
	uint64_t busy_since, busy_time;
	uint32_t slots[MACHINE_SMS];  /* process + 1, 0: free */
	uint32_t wanted[MACHINE_SMS]; /* by a stopped block that may go on */
	/* Time slices; nanoseconds, monotonic. */
	_Atomic uint32_t resident; /* leader + 1 */
	_Atomic uint64_t slice_begin, slice_end;
	_Atomic uint32_t ran; /* a block of the resident group, in this turn */
	uint64_t turn_began;
	_Atomic uint64_t reaped_at;
	struct shared_kernel kernels[MACHINE_KERNELS];
};

struct shared {
	_Atomic uint32_t magic;
	uint32_t size;
	struct machine_config config;
	_Atomic uint32_t lock; /* 0, or who holds it: generation << 16 | process + 1 */
	_Atomic uint32_t lock_waiting;
	struct shared_process processes[MACHINE_PROCESSES];
	struct shared_gpu gpus[MACHINE_GPUS];
	uint32_t clients; /* of the resource manager, ever */
	struct shared_object objects[MACHINE_PROCESSES][MACHINE_OBJECTS];
};

/* A lock that survives the death of its holder. */
void shared_lock(struct machine *m);
void shared_unlock(struct machine *m);

/* False: it took longer than @ns. */
bool shared_wait(struct shared_gpu *gpu, uint32_t sequence, uint64_t ns);
void shared_moved(struct shared_gpu *gpu);

bool shared_alive(const struct machine *m, uint32_t index);
/* Claims entry @index if no live process owns it. What a dead owner left stays until
 * shared_forget(). Only one process may join at a time. */
bool shared_claim(struct machine *m, uint32_t index);
uint32_t shared_pid(const struct machine *m, uint32_t index);
/* It was stopped by a signal. */
bool shared_frozen(const struct machine *m, uint32_t index);
/* Waits a bounded time while @group is stopped. */
void shared_await(struct shared_group *group);
void shared_start_stop(struct shared_group *group, bool stopped);
/* Also while another process has claimed a dead one's entry and has not joined yet. */
bool shared_dead(const struct machine *m, uint32_t index);
/* Frees everything that process @index held. The caller holds the lock. */
void shared_forget(struct shared *s, uint32_t index);

uint64_t shared_now(void);

/* use.c; the lock is held. Call before @group stops or goes on. */
void shared_count_use(struct shared_group *group);
/* A block of @group has a slot now, or has none any more. */
void shared_place(struct shared_group *group, bool placed);

/* group.c; the lock is held. */
struct shared_group *shared_group(struct shared *s, uint32_t number);
static inline uint32_t shared_leader(const struct shared *s, uint32_t owner, uint32_t group)
{
	return s->processes[owner - 1].groups[group].leader;
}
/* May blocks of @leader run on @gpu now? Reading is enough: no lock is needed. */
bool shared_runs(const struct machine *m, uint32_t gpu, uint32_t leader);
/* A block of @leader has run. */
void shared_ran(const struct machine *m, uint32_t gpu, uint32_t leader);
/* Makes another group resident if it is time. */
void shared_schedule(struct machine *m, uint32_t gpu);
/* Nanoseconds until shared_schedule() may have something to do. */
uint64_t shared_wait_ns(const struct machine *m, uint32_t gpu);
/* Blocks of process @index are gone in mid-kernel: what it shares with others is broken. */
void shared_break(struct shared *s, uint32_t index);
void shared_reap(struct machine *m);
/* Blocks of @leader on slots. */
uint32_t shared_placed(const struct shared *s, uint32_t leader);
/* A new group of process @index; MACHINE_GROUPS: there are too many. */
uint32_t shared_group_new(struct shared *s, uint32_t index, uint32_t gpu);
