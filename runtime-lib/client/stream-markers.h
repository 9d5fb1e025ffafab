/* Trails: how far a stream is that never runs dry. Where a hold is to be expected, each gate has a
 * marker before it; so it is known what ran before a gate that is closed, however much is queued
 * behind. */
#pragma once

#include "client/stream.h"

struct stream_markers;

/* Worker, with the stream's context current: gates get markers from now on. */
void stream_markers_want(struct stream *stream);

/* Launch path: a marker, if they are wanted and one is free. */
void stream_markers_leave(struct stream *stream);

/* Worker: takes note of the markers that were passed. */
void stream_markers_follow(struct stream *stream);

/* Whether there are markers, free ones as well, which are of the stream's context. */
bool stream_markers_has_markers(const struct stream *stream);

/* The stream is gone, and the worker is through with it. @context: its context is there still. */
void stream_markers_end(struct stream *stream, bool context);
