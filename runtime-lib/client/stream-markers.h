/* Markers in a stream that never runs dry: each gate has an event before it, while the gate may be
 * closed. So libweir knows what ran before a closed gate, however much is queued behind it. */
#pragma once

#include "shim/driver.h"

#define STREAM_MARKERS 32 /* of a stream; if all are pending a gate gets none */

/* How much of a stream was issued at some moment. */
struct progress {
	uint32_t life; /* of the stream's record */
	uint64_t issued, predicted;
};

/* Allocated once for a stream's record and never freed: a thread may be in the middle of a launch
 * when its stream or context ends. */
struct stream_markers {
	_Atomic unsigned next;
	_Atomic unsigned n; /* events that exist; 0: none are wanted */
	struct stream_marker {
		CUevent event;
		_Atomic int state;
		struct progress before; /* what lies before it; written before it is pending */
	} markers[STREAM_MARKERS];
};

/* Worker, with the context current: makes the events. Returns @markers, or new ones for NULL. */
struct stream_markers *stream_markers_want(struct stream_markers *markers);

/* Launch path: records a marker, if they are wanted and one is free. */
void stream_markers_leave(struct stream_markers *markers, CUstream handle,
			  const struct progress *before);

/* Worker: finds a marker that the stream has passed, from *@next on, which begins at 0; @before
 * says what the stream has finished. False: there is none. */
bool stream_markers_passed(struct stream_markers *markers, unsigned *next, struct progress *before);

/* Worker: a marker right behind the first @issued launches of the stream was not passed, as of the
 * last look. */
bool stream_markers_pending(const struct stream_markers *markers, uint32_t life, uint64_t issued);

/* The stream is gone, and the worker has finished with it. @context: its context still exists. */
void stream_markers_end(struct stream_markers *markers, bool context);
