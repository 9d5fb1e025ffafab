#include "client/stream-markers.h"

enum { MARKER_FREE, MARKER_TAKEN, MARKER_PENDING };

static unsigned make_events(struct stream_markers *markers)
{
	unsigned n = 0;

	beside_captures();
	for (; n < STREAM_MARKERS; n++) {
		struct stream_marker *marker = &markers->markers[n];
		if (real(cuEventCreate)(&marker->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
			break;
		atomic_store(&marker->state, MARKER_FREE);
	}
	return n;
}

struct stream_markers *stream_markers_want(struct stream_markers *markers)
{
	if (!markers)
		markers = calloc(1, sizeof(*markers));
	if (markers && !atomic_load(&markers->n))
		atomic_store(&markers->n, make_events(markers));
	return markers;
}

void stream_markers_leave(struct stream_markers *markers, CUstream handle,
			  const struct progress *before)
{
	unsigned n = load_acquire(&markers->n);
	int state = MARKER_FREE;

	if (!n)
		return;
	unsigned next = load_relaxed(&markers->next);
	struct stream_marker *marker = &markers->markers[next % n];
	if (!atomic_compare_exchange_strong(&marker->state, &state, MARKER_TAKEN))
		return;
	store_relaxed(&markers->next, next + 1);
	/* Other threads may have put more before the marker. */
	marker->before = *before;
	bool left = real(cuEventRecord)(marker->event, handle) == CUDA_SUCCESS;
	atomic_store(&marker->state, left ? MARKER_PENDING : MARKER_FREE);
}

bool stream_markers_passed(struct stream_markers *markers, unsigned *next, struct progress *before)
{
	unsigned n = markers ? atomic_load(&markers->n) : 0;

	while (*next < n) {
		struct stream_marker *marker = &markers->markers[(*next)++];
		if (atomic_load(&marker->state) != MARKER_PENDING)
			continue;
		CUresult result = real(cuEventQuery)(marker->event);
		if (result == CUDA_ERROR_NOT_READY)
			continue;
		*before = marker->before;
		atomic_store(&marker->state, MARKER_FREE);
		if (result == CUDA_SUCCESS)
			return true;
	}
	return false;
}

bool stream_markers_pending(const struct stream_markers *markers, uint32_t life, uint64_t issued)
{
	unsigned n = markers ? atomic_load(&markers->n) : 0;

	for (unsigned i = 0; i < n; i++) {
		const struct stream_marker *marker = &markers->markers[i];
		if (atomic_load(&marker->state) == MARKER_PENDING && marker->before.life == life &&
		    marker->before.issued == issued)
			return true;
	}
	return false;
}

void stream_markers_end(struct stream_markers *markers, bool context)
{
	unsigned n = markers ? atomic_exchange(&markers->n, 0) : 0;

	for (unsigned i = 0; context && i < n; i++)
		real(cuEventDestroy_v2)(markers->markers[i].event);
}
