/* Streams: what is known about each, found by handle on the launch path without a lock. Records
 * live in a pool and are never freed, only used again, so a stale pointer is harmless. The pool
 * takes memory as it fills up. A record belongs to a client's slot for ever. */
#pragma once

#include "client/client.h"
#include "client/stream-markers.h"
#include "client/subsystem.h"

struct preempt_slot;

#define STREAMS_MAX           65536
#define STREAM_LEVEL_OWN      UINT8_MAX /* `level`: the client's */
#define STREAM_MARKER         1 /* bits of `marker_wanted`: the next launch records `marker` */
#define STREAM_MARKERS_EVENLY 2 /* launches leave `markers` evenly in all that is outstanding */
#define STREAM_GOES           1 /* `key` of a stream that ends: its record is not to be used again yet */

/* What every launch reads lies in the first two cache lines, what it writes in the second: between
 * two launches the driver has used all of the first-level cache. */
struct stream {
	_Alignas(64) _Atomic uint64_t key; /* 0: the stream is gone */
	_Atomic(struct client *) client;
	_Atomic(CUstream) handle; /* for the driver; the default streams have special ones */
	/* For kernels that leave (launch/preempt.h). The worker gives a wanted slot. */
	_Atomic(struct preempt_slot *) slot;
	_Atomic int slot_wanted;
	_Atomic int priority; /* as the program made it */
	/* A marker that the worker waits for: it asks by STREAM_MARKER, the next launch records the
	 * event and writes down how many launches lie before it. */
	_Atomic int marker_wanted;
	_Atomic bool per_thread; /* CU_STREAM_PER_THREAD of one thread: no other can name it */
	_Atomic bool of_loop;    /* the loop tells how long its launches ran (launch/loops.h) */
	_Atomic uint8_t level;   /* at which it acts, unless the client's is lower */
	_Atomic(CUevent) marker;
	_Atomic(struct stream_markers *) markers;

	/* Launches: begun before the driver is called, issued after it returned, completed when
	 * that many are known to be finished. completed <= issued <= begun. One that was taken
	 * for finished may turn out not to be (launch/uncounted.h): completed goes back then. */
	_Alignas(64) _Atomic uint64_t begun;
	_Atomic uint64_t issued, completed;
	_Atomic uint64_t predicted;  /* ns, of all issued launches */
	_Atomic uint64_t since_gate; /* ns of predicted work since the last gate */
	_Atomic int gate_last;       /* which kernels that one lets pass (enum gate_kind) */
	_Atomic uint64_t gone_first; /* ns of short kernels that went before a gate that is due */
	_Atomic uint64_t executed;   /* ns, predicted, of all completed launches; <= predicted */
	_Atomic uint64_t unknown;    /* number of the last launch of unknown time */

	_Atomic uint64_t marked;           /* launches before the marker; 0: none recorded */
	_Atomic uint64_t marked_predicted; /* ns, of these; written before `marked` */
	_Atomic uint64_t left_at; /* ns: `predicted` at the last of STREAM_MARKERS_EVENLY */
	_Atomic uint64_t
		raise_mark; /* worker: launches that may lie behind gates of a lower level */
	/* Worker: what was completed at the last look, STREAM_IDLE: all; and the ns that the
	 * outstanding work has run since. Of another `life` it counts for nothing: only the worker
	 * writes here, and it may be looking when the record gets its next stream. */
	uint64_t seen, ran;
	uint32_t seen_life;
	struct overrun {
		uint64_t completed, time; /* of the launch behind that many; ns */
		uint32_t life;
		bool seen, began; /* at the last look; while gates were open */
	} overrun;                /* launch/overrun.h */
	/* Number of the last launch that has gates inside, and of the first of those that were
	 * launched without another one between; 0: none. */
	_Atomic uint64_t gated_inside, gated_since;
	struct sliced {
		uint64_t completed; /* of the launch behind that many */
		uint32_t life;
		bool seen, began,
			away;  /* at the last look; while gates were open; they have closed since */
	} sliced;              /* launch/sliced.h */
	_Atomic int capturing; /* a capture began in this stream */

	/* When to look whether the stream has work that is not counted; 0: it has none
	 * (launch/uncounted.h). */
	_Atomic uint64_t uncounted;

	_Atomic uint32_t gone_at; /* the worker's visit then, which may still use this record */
	_Atomic uint32_t life;    /* how many streams have had this record */
	struct stream *next;      /* in the bucket */
	struct stream *sibling;   /* of the same client */
};

/* The records of a client's streams. */
struct streams {
	_Atomic(struct stream *) first;
	_Atomic uint64_t gone_launches, gone_predicted; /* of streams that are gone */
	_Atomic uint32_t levels;                        /* bit q: a stream was given level q */
	/* The lowest level of streams that ended with work outstanding; above its 8 bits, how many
	 * did: a thread that clears it after a wait must not miss one that ended meanwhile. */
	_Atomic uint32_t gone_level;
	uint64_t begun, executed; /* worker: at the last look */
};
PER_CLIENT(streams)

#define stream_for_each(s, owner)                                                        \
	for (struct stream * (s) = load_acquire(&streams_of(owner)->first); (s) != NULL; \
	     (s) = (s)->sibling)                                                         \
		if (load_acquire(&(s)->key) > STREAM_GOES)

static inline unsigned streams_gone_level(uint32_t gone_level)
{
	return gone_level & UINT8_MAX;
}

/* The record of a stream as the program names it to the driver. @per_thread: of a function for
 * which NULL means the per-thread default stream (_ptsz). NULL: not governed. */
struct stream *stream_find(CUstream handle, bool per_thread);

/* The same, but makes no record. */
struct stream *stream_known(CUstream handle, bool per_thread);

/* Before a stream is destroyed: no thread of ours uses its handle after the return. */
void stream_gone(CUstream handle);

/* The next launch records a marker; in a per-thread stream each launch does. With the stream's
 * context current. */
void stream_want_marker(struct stream *stream);

/* The progress that a wait or a query proves if it begins now and succeeds. */
static inline struct progress stream_progress(struct stream *stream)
{
	/* First: counters of the record's next stream must not be taken for this one's. */
	uint32_t life = atomic_load(&stream->life);

	return (struct progress){life, atomic_load(&stream->issued),
				 atomic_load(&stream->predicted)};
}

/* Launch path: a marker before a gate that may be closed, if the worker wants them. */
static inline void stream_leave_marker(struct stream *stream)
{
	struct stream_markers *markers = load_acquire(&stream->markers);

	if (markers && load_relaxed(&markers->n)) {
		struct progress before = stream_progress(stream);
		stream_markers_leave(markers, stream->handle, &before);
	}
}

/* Launch path: the same behind the launches that take up to @predicted, if the last such marker is
 * far enough away. However much is queued, it is reported in parts. */
void stream_leave_marker_evenly(struct stream *stream, uint64_t predicted);

/* At least this much of the stream is finished, if it is still the same stream. */
void stream_completed(struct stream *stream, const struct progress *progress);

/* True for the driver's answers after a kernel has failed: nothing of that context runs now or
 * later, and the driver gives the same answer to everything. */
bool stream_broken(CUresult result);

static inline void stream_raise_to(_Atomic uint64_t *counter, uint64_t count)
{
	uint64_t seen = atomic_load(counter);

	while (seen < count && !atomic_compare_exchange_weak(counter, &seen, count))
		;
}

/* Launch path: the launch of this number may run for ever. */
static inline void stream_unknown(struct stream *stream, uint64_t number)
{
	stream_raise_to(&stream->unknown, number);
}

/* All outstanding launches are of known time, so they will end. */
static inline bool stream_will_end(struct stream *stream)
{
	return atomic_load(&stream->completed) >= atomic_load(&stream->unknown);
}

static inline uint64_t stream_outstanding(struct stream *stream)
{
	/* completed first: begun only grows, so the difference is never negative. */
	uint64_t completed = atomic_load(&stream->completed);

	return atomic_load(&stream->begun) - completed;
}

/* Worker: GPU time that is left of the client's outstanding work, if the time @passed since the
 * last look counts as run; never 0 for predicted work. *@late: something ran far longer than
 * predicted. */
uint64_t streams_remaining(struct client *client, uint64_t passed, bool *late);

/* Captured streams of the process. Meanwhile launches ask the driver whether they are captured, and
 * the worker queries no stream, because a query would spoil the capture. */
extern _Atomic int capture_count;

/* Launch path: is this launch recorded instead of run? */
static inline bool stream_is_captured(const struct stream *stream)
{
	CUstreamCaptureStatus status;

	return atomic_load(&capture_count) &&
	       real(cuStreamIsCapturing)(stream->handle, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Columns of the table (subsystem.h). */
void stream_init(struct client *client);
void stream_look(struct client *client, struct tick *tick);
void stream_drive(struct client *client, struct tick *tick);
void stream_work(struct client *client, struct tick *tick);
void stream_forget(struct client *client);
void stream_fork(void);
