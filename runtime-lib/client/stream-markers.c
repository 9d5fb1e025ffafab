#include "client/stream-markers.h"

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
struct stream_markers {
	_Atomic unsigned next;
	_Atomic unsigned n; /* markers that there are; 0: none are wanted */
	struct marker markers[MARKERS];
};

static unsigned make_events(struct stream_markers *markers)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	unsigned n = 0;

	real(cuThreadExchangeStreamCaptureMode)(&mode);
	for (; n < MARKERS; n++) {
		struct marker *marker = &markers->markers[n];
		if (real(cuEventCreate)(&marker->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
			break;
		atomic_store(&marker->state, MARKER_FREE);
	}
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	return n;
}

void stream_markers_want(struct stream *stream)
{
	struct stream_markers *markers = atomic_load(&stream->markers);

	if (!markers) {
		markers = calloc(1, sizeof(*markers));
		if (!markers)
			return;
		atomic_store(&stream->markers, markers);
	}
	if (!atomic_load(&markers->n))
		atomic_store(&markers->n, make_events(markers));
}

void stream_markers_leave(struct stream *stream)
{
	struct stream_markers *markers =
		atomic_load_explicit(&stream->markers, memory_order_acquire);
	unsigned n = markers ? atomic_load_explicit(&markers->n, memory_order_acquire) : 0;
	int state = MARKER_FREE;

	if (!n)
		return;
	unsigned next = atomic_load_explicit(&markers->next, memory_order_relaxed);
	struct marker *marker = &markers->markers[next % n];
	if (!atomic_compare_exchange_strong(&marker->state, &state, MARKER_TAKEN))
		return;
	atomic_store_explicit(&markers->next, next + 1, memory_order_relaxed);
	/* What is issued lies before the marker; more may, of other threads. */
	marker->progress = stream_progress(stream);
	bool left = real(cuEventRecord)(marker->event, stream->handle) == CUDA_SUCCESS;
	atomic_store(&marker->state, left ? MARKER_LEFT : MARKER_FREE);
}

void stream_markers_follow(struct stream *stream)
{
	struct stream_markers *markers = atomic_load(&stream->markers);
	unsigned n = markers ? atomic_load(&markers->n) : 0;

	for (unsigned i = 0; i < n; i++) {
		struct marker *marker = &markers->markers[i];
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

bool stream_markers_has_markers(const struct stream *stream)
{
	const struct stream_markers *markers = atomic_load(&stream->markers);

	return markers && atomic_load(&markers->n);
}

void stream_markers_end(struct stream *stream, bool context)
{
	struct stream_markers *markers = atomic_load(&stream->markers);
	unsigned n = markers ? atomic_exchange(&markers->n, 0) : 0;

	for (unsigned i = 0; context && i < n; i++)
		real(cuEventDestroy_v2)(markers->markers[i].event);
}
