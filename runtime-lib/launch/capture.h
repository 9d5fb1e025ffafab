/* Stream capture. While any stream of the process is captured, launches ask the driver whether
 * theirs is, and the worker keeps its hands off streams: a query would spoil the capture. */
#pragma once

#include "client/stream.h"

extern _Atomic int capture_count;

/* Launch path: is this launch recorded instead of run? */
static inline bool capture_covers(const struct stream *stream)
{
	CUstreamCaptureStatus status;

	return atomic_load(&capture_count) &&
	       real(cuStreamIsCapturing)(stream->handle, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The stream goes, captured or not. */
void capture_gone(struct stream *stream);
