/* The layout of the shared file, and its lock. Private to this folder. */
#pragma once

#include "simcuda/machine/machine.h"

#include <stdatomic.h>

#define SHARED_MAGIC 0x324d4953u /* "SIM2" */

struct shared_process {
	uint32_t role;               /* 0: free */
	_Atomic uint32_t generation; /* how often the entry was claimed */
	uint32_t joined;             /* the generation that wrote the other fields */
	uint32_t pid;                /* in its own namespace */
	uint32_t touched;            /* bit g: has a context on GPU g */
	uint64_t memory[MACHINE_GPUS];
};

struct shared_kernel {
	uint32_t owner; /* process + 1 */
	uint64_t cookie;
	uint64_t unstarted;
};

struct shared_gpu {
	_Atomic uint32_t sequence; /* a futex: counts moves of the queue */
	_Atomic uint32_t waiting;  /* somebody may sleep on it */
	uint64_t head, tail;
	uint64_t busy_since, busy_time;
	uint32_t slots[MACHINE_SMS]; /* process + 1, 0: free */
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
};

/* A lock that survives the death of its holder. */
void shared_lock(struct machine *m);
void shared_unlock(struct machine *m);

/* False: it took too long. */
bool shared_wait(struct shared_gpu *gpu, uint32_t sequence);
void shared_moved(struct shared_gpu *gpu);

bool shared_alive(const struct machine *m, uint32_t index);
/* Claims entry @index if no live process owns it. What a dead owner left stays until
 * shared_forget(). Only one process may join at a time. */
bool shared_claim(struct machine *m, uint32_t index);
uint32_t shared_pid(const struct machine *m, uint32_t index);
/* Frees everything that process @index held. The caller holds the lock. */
void shared_forget(struct shared *s, uint32_t index);
