#include "client/trail.h"

#include "weir/base.h"

#include <stdlib.h>

#define MARKERS 32 /* at once, of a stream; where all are on their way, a gate has none */

enum { MARKER_FREE, MARKER_TAKEN, MARKER_LEFT };

struct marker {
	CUevent event;
	_Atomic int state;
	struct progress progress; /* what lies before it; written before it is MARKER_LEFT */
};

/* Of a stream's record, and stays with it: a thread may be in the middle of a launch when its
 * stream or context goes. */
struct trail {
	_Atomic unsigned next;
	_Atomic unsigned n; /* markers that there are; 0: none are wanted */
	struct marker markers[MARKERS];
};

static unsigned make_events(struct trail *trail)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	unsigned n = 0;

	real(cuThreadExchangeStreamCaptureMode)(&mode);
	for (; n < MARKERS; n++) {
		struct marker *marker = &trail->markers[n];
		if (real(cuEventCreate)(&marker->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
			break;
		atomic_store(&marker->state, MARKER_FREE);
	}
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	return n;
}

void trail_want(struct stream *stream)
{
	struct trail *trail = atomic_load(&stream->trail);

	if (!trail) {
		trail = calloc(1, sizeof(*trail));
		if (!trail)
			return;
		atomic_store(&stream->trail, trail);
	}
	if (!atomic_load(&trail->n))
		atomic_store(&trail->n, make_events(trail));
}

void trail_leave(struct stream *stream)
{
	struct trail *trail = atomic_load_explicit(&stream->trail, memory_order_acquire);
	unsigned n = trail ? atomic_load_explicit(&trail->n, memory_order_acquire) : 0;
	int state = MARKER_FREE;

	if (!n)
		return;
	unsigned next = atomic_load_explicit(&trail->next, memory_order_relaxed);
	struct marker *marker = &trail->markers[next % n];
	if (!atomic_compare_exchange_strong(&marker->state, &state, MARKER_TAKEN))
		return;
	atomic_store_explicit(&trail->next, next + 1, memory_order_relaxed);
	/* What is issued lies before the marker; more may, of other threads. */
	marker->progress = stream_progress(stream);
	bool left = real(cuEventRecord)(marker->event, stream->handle) == CUDA_SUCCESS;
	atomic_store(&marker->state, left ? MARKER_LEFT : MARKER_FREE);
}

void trail_follow(struct stream *stream)
{
	struct trail *trail = atomic_load(&stream->trail);
	unsigned n = trail ? atomic_load(&trail->n) : 0;

	for (unsigned i = 0; i < n; i++) {
		struct marker *marker = &trail->markers[i];
		if (atomic_load(&marker->state) != MARKER_LEFT)
			continue;
		CUresult result = real(cuEventQuery)(marker->event);
		if (result == CUDA_ERROR_NOT_READY)
			continue;
		if (result == CUDA_SUCCESS)
			stream_completed(stream, &marker->progress);
		atomic_store(&marker->state, MARKER_FREE);
	}
}

bool trail_has_markers(const struct stream *stream)
{
	const struct trail *trail = atomic_load(&stream->trail);

	return trail && atomic_load(&trail->n);
}

void trail_end(struct stream *stream, bool context)
{
	struct trail *trail = atomic_load(&stream->trail);
	unsigned n = trail ? atomic_exchange(&trail->n, 0) : 0;

	for (unsigned i = 0; context && i < n; i++)
		real(cuEventDestroy_v2)(trail->markers[i].event);
}
