/* Launching kernels in forms that can leave (weir/preempt-abi.h). preempt/README.md has the model.
 *
 * A launch in the form persistent or resumable is a chain in the program's own stream:
 *
 *	kernel, gate, continuation, gate, continuation, … gate, last continuation
 *
 * The kernel, and all continuations but the last, leave when a higher level wants the GPU. Then the
 * next gate is closed until it does not, and the continuation behind goes on. The last one is never
 * asked to leave, so the launch is finished when the chain is. Nothing waits for a word that we
 * would have to write, and nobody has to launch anything later: while a stream is blocked, a launch
 * in another stream may be stuck behind it (README.md, traps).
 *
 * How many continuations a launch needs is learned from evictions (autotune). A client whose kernel
 * is finished while gates are closed says so (WEIR_STATUS_DONE), and the agent lets it pass.
 *
 * No launch of a form begins before the launch in front of it is finished, also if the program
 * allows it (weir/preempt-abi.h). A native launch that may overlap the one before begins behind the
 * last continuation, because a form lets no launch begin early.
 *
 * A sliced launch is several launches, each of a part of the grid, with gates between.
 */
#pragma once

#include "client/level-binding.h"
#include "client/stream.h"
#include "preempt/tuning.h"
#include "shim/call.h"

#include <sched.h>

#define PREEMPT_SLOTS_MAX 64  /* of a client */
#define FLIGHTS_MAX       512 /* of a slot, not seen to be finished; a power of two */
/* Continuations of all launches in flight of a stream. The driver queues about 1000 operations
 * (preempt/launch-queue.h), a continuation and its gate are two, and a launch into a full queue
 * blocks in the driver with its lock. In a CUDA graph they take no fewer places: behind a chain, a
 * graph of 256 of each blocked until the kernel was done (H100). A launch gets at most half of what
 * is left (three quarters if its length is not known), but never fewer than the least. */
#define LINKS_MAX   448
#define LINKS_LEAST 4
/* Of a launch in a form. */
#define FORM_ATTRIBUTES_MAX 16u

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

/* Launch path, with the slot locked: launches as the decision's config says. False: nothing was
 * launched; launch natively. */
bool preempt_launch(struct stream *stream, struct preempt_slot *slot,
		    const struct level_binding *binding, const struct kernel_call *call,
		    const struct launch_decision *decision, struct sample *sample,
		    CUresult *result);

/* Worker: all that is outstanding in the stream was finished at the last look. */
bool preempt_done(struct stream *stream);

/* Of a client; for the status page and tests. */
struct preempting {
	_Atomic int slots_wanted;              /* by a stream */
	_Atomic(struct preempt_slots *) slots; /* NULL until wanted; the worker makes them */
	_Atomic uint64_t launches[WEIR_STATUS_FORMS];
	/* Worker. */
	uint64_t evictions[WEIR_STATUS_FORMS];
	uint64_t blocks_saved, blocks_drained, bytes_saved;
	uint64_t partial_leaves; /* as in the status page */
};
PER_CLIENT(preempting)

/* Can the kernel @of be launched in a form in this stream? Asks the worker for what is missing. */
bool preempt_is_ready(struct stream *stream, const struct sampled *of);

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
