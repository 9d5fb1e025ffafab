/* Streams: what is known about each, found by handle on the launch path without a lock. Records
 * live in a fixed pool and are never freed, only used again, so a stale pointer is harmless. */
#pragma once

#include "client/client.h"

struct preempt_slot;
struct stream_markers;

#define STREAMS_MAX 2048
#define STREAM_IDLE UINT64_MAX /* `seen` */
#define STREAM_GOES 1          /* `key` of one whose record is not to be used again yet */

struct stream {
	_Atomic uint64_t key; /* 0: the stream is gone */
	_Atomic uint32_t
		gone_at;       /* the worker's visit then: it may still have this record in hand */
	_Atomic uint32_t life; /* how many streams have had this record */
	_Atomic(CUstream)
		handle;          /* as to be given to the driver; special for the default streams */
	_Atomic bool per_thread; /* CU_STREAM_PER_THREAD of one thread: no other can name it */
	_Atomic(struct client *) client;
	struct stream *next;  /* in the bucket */
	_Atomic int priority; /* as the program made it */

	/* Launches: begun before the driver is called, issued after it returned, completed when
	 * that many are known to be finished. completed <= issued <= begun. */
	_Atomic uint64_t begun, issued, completed;
	_Atomic uint64_t predicted;  /* ns, of all issued */
	_Atomic uint64_t executed;   /* ns, of all completed: as predicted; <= predicted */
	_Atomic uint64_t unknown;    /* launches up to the last one of unknown time */
	_Atomic uint64_t since_gate; /* ns of predicted work since the last gate */
	_Atomic uint64_t gone_first; /* ns of it since a gate was due */

	/* A point in the stream that the worker waits for: it asks by `marker_wanted`, the next
	 * launch records the event and writes down how many launches lie before it. */
	_Atomic(CUevent) marker;
	_Atomic int marker_wanted;
	_Atomic uint64_t marked;           /* launches before the marker; 0: none recorded */
	_Atomic uint64_t marked_predicted; /* ns, of these; written before `marked` */
	_Atomic uint64_t
		raise_mark; /* worker: launches that may lie behind gates of a lower level */
	_Atomic(struct stream_markers *) markers; /* more of them (markers.h); stays */
	/* Worker: how much was completed at the last look, or nothing was outstanding then; and for
	 * how long what is outstanding now has run since. */
	uint64_t seen, ran;
	_Atomic int capturing; /* a capture began in this stream */

	/* For kernels that leave (preempt.h); set by the worker when it is wanted. */
	_Atomic(struct preempt_slot *) slot;
	_Atomic int slot_wanted;
};

extern struct stream stream_pool[STREAMS_MAX];

/* Records that were ever used; all others are empty. */
size_t stream_count(void);

#define stream_for_each(s, owner)                                                                 \
	for (struct stream * (s) = stream_pool, *end_ = stream_pool + stream_count(); (s) < end_; \
	     (s)++)                                                                               \
		if (atomic_load_explicit(&(s)->key, memory_order_acquire) > STREAM_GOES &&        \
		    (s)->client == (owner))

/* The record of a stream as it is named to a function of the driver. @per_thread: the function is
 * one of those for which NULL means the per-thread default stream (_ptsz). NULL: not governed. */
struct stream *stream_find(CUstream handle, bool per_thread);

/* The same, but makes no record. */
struct stream *stream_known(CUstream handle, bool per_thread);

/* Before a stream is destroyed: no thread of ours uses its handle after the return. */
void stream_gone(CUstream handle);

/* All streams of a client whose context goes. */
void stream_forget(struct client *client);

/* In a forked child. */
void stream_forget_all(void);

/* The next launch records a marker; in a per-thread stream each launch does. With its context
 * current. */
void stream_want_marker(struct stream *stream);

/* How much was issued: what a wait that begins now, or a query, will have seen finished. */
struct progress {
	uint32_t life;
	uint64_t issued, predicted;
};
static inline struct progress stream_progress(struct stream *stream)
{
	uint32_t life = atomic_load(&stream->life); /* first: what is read of the next one's is not
						       taken for this one's */

	return (struct progress){life, atomic_load(&stream->issued),
				 atomic_load(&stream->predicted)};
}

/* At least so much of the stream is finished, if it is still the same one. */
void stream_completed(struct stream *stream, const struct progress *progress);

/* The driver's answer where a kernel has failed: nothing runs any more in that context, nor ever
 * will, and whatever is asked about it is answered so. */
bool stream_broken(CUresult result);

/* The launch of this number may take for ever. */
void stream_unknown(struct stream *stream, uint64_t number);

/* All that is outstanding took its time before, and will end. */
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
