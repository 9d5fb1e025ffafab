/* What a stream needs for kernels that can leave: words and a save area on the GPU, and report
 * words in host memory. The launch path fills in flights, the worker takes finished ones. */
#pragma once

#include "client/level-binding.h"
#include "client/stream.h"
#include "preempt/tuning.h"

#include <sched.h>

#define PREEMPT_SLOTS_MAX 64  /* of a client */
#define FLIGHTS_MAX       512 /* of a slot, not seen to be finished; a power of two */

/* A launch in flight. The launching thread writes it, the worker reads it. */
struct flight {
	struct tuned_kernel *tuned;
	struct sample *sample; /* or NULL */
	enum weir_form form;
	uint32_t chain;
	uint64_t save;   /* bytes of a saved block; 0: it saves none */
	uint64_t number; /* of the launch in its stream */
};

/* struct weir_report, as the worker reads it. */
struct preempt_report {
	_Atomic uint64_t launch, blocks, partial, reserved;
};
static_assert(sizeof(struct preempt_report) == sizeof(struct weir_report), "one layout");

/* What a stream needs for such kernels. The worker takes one for a stream that wants it, and frees
 * it when the stream is gone and its last launch finished. */
struct preempt_slot {
	_Atomic int taken;
	_Atomic int orphan; /* its stream is gone */
	_Atomic int busy;   /* a thread is putting a launch into the stream */
	CUdeviceptr words;
	struct preempt_report *reports; /* FLIGHTS_MAX; the GPU writes */
	CUdeviceptr reports_gpu;
	_Atomic uint64_t saves, saves_size; /* device memory; the size is published last */
	_Atomic uint64_t saves_wanted;
	uint64_t saves_refused; /* worker */

	_Atomic uint32_t links; /* continuations of the launches in flight */
	_Atomic uint32_t last;  /* serial of the last launch whose chain is complete */
	_Atomic uint32_t seen;  /* worker: serial of the last one seen to be finished; */
	uint32_t evictions;     /* worker: evictions reported with it; */
	uint64_t landed;        /* its number; 0: none */
	uint64_t blocks;        /* blocks of weir_report, of the last that could save some */
	uint64_t partial;       /* partial of weir_report, of the last that left some SMs */
	struct flight flights[FLIGHTS_MAX];
};

enum slots_state { SLOTS_NONE, SLOTS_ZEROING, SLOTS_READY, SLOTS_REFUSED };

/* Of a client. Made by the worker, never freed: a thread may be in the middle of a launch. */
struct preempt_slots {
	_Atomic int stale; /* the context is gone: the worker starts over */
	enum slots_state state;
	CUdeviceptr words;
	CUstream zeroing; /* clears the words; then NULL */
	struct preempt_report *reports;
	CUdeviceptr reports_gpu;
	struct preempt_slot slot[PREEMPT_SLOTS_MAX];
};

/* Around every launch into a stream with a slot: nothing may come into the middle of a chain. Only
 * threads that launch into the same stream meet here. */
static inline void preempt_slot_lock(struct preempt_slot *slot)
{
	while (atomic_exchange_explicit(&slot->busy, 1, memory_order_acquire))
		sched_yield();
}

static inline void preempt_slot_unlock(struct preempt_slot *slot)
{
	store_release(&slot->busy, 0);
}

/* Worker: all that is outstanding in the stream was finished at the last look. */
bool preempt_done(struct stream *stream);

/* Of a client; for the status page and tests. */
struct preempting {
	_Atomic int slots_wanted;              /* by a stream */
	_Atomic(struct preempt_slots *) slots; /* NULL until wanted; the worker makes them */
	_Atomic uint64_t launches[WEIR_STATUS_FORMS];
	/* Of the last launch whose workers can be bounded, of a tuned kernel; NULL: none. */
	const struct launch_config *_Atomic latest;
	/* Worker. */
	uint64_t evictions[WEIR_STATUS_FORMS];
	uint64_t blocks_saved, blocks_drained, bytes_saved;
	uint64_t partial_leaves; /* as in the status page */
};
PER_CLIENT(preempting)

/* Launch path: the stream should have a slot. */
static inline void preempt_want(struct stream *stream)
{
	if (load_relaxed(&stream->slot_wanted))
		return;
	atomic_store(&stream->slot_wanted, 1);
	atomic_store(&preempting_of(stream->client)->slots_wanted, 1);
}

/* Columns of the table. */
void preempt_init(struct client *client);
void preempt_stream_gone(struct stream *stream);
void preempt_look(struct client *client, struct tick *tick);
void preempt_drive(struct client *client, struct tick *tick);
void preempt_forget(struct client *client);
