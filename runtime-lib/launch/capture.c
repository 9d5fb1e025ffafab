/* Hooks of stream capture; stream.h explains what changes while something is captured. */
#include "client/stream.h"
#include "client/worker.h"

/* Every capture counts, also of a stream without a record: it may get one in the middle of the
 * capture, or be joined by streams that have one. */
static struct stream *begin(CUstream handle, bool per_thread)
{
	struct stream *stream = driver_ready() ? stream_find(handle, per_thread) : NULL;

	atomic_fetch_add(&capture_count, 1);
	worker_grace();
	return stream;
}

/* If the call failed, the stream may have been captured before. */
static CUresult begun(struct stream *stream, CUresult result)
{
	if (result != CUDA_SUCCESS) {
		atomic_fetch_sub(&capture_count, 1);
	} else if (stream) {
		atomic_store(&stream->capturing, 1);
		/* The graph is gated where it is launched; inside, gates come by the work between
		 * them. */
		atomic_store(&stream->since_gate, 0);
	}
	return result;
}

static bool is_captured(CUstream stream)
{
	CUstreamCaptureStatus status;

	return real(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A broken context does not say: then a stream is captured if its capture was begun. */
static bool was_captured(CUstream handle, const struct stream *stream)
{
	CUstreamCaptureStatus status;

	return is_captured(handle) || (stream && atomic_load(&stream->capturing) &&
				       stream_broken(real(cuStreamIsCapturing)(handle, &status)));
}

/* Some calls fail and leave the capture as it is: by another thread, or for a stream that only
 * joined. */
static CUresult end(CUstream handle, bool per_thread, CUgraph *graph,
		    CUresult (*function)(CUstream, CUgraph *))
{
	CUstream asked = handle || !per_thread ? handle : CU_STREAM_PER_THREAD;
	struct stream *stream = driver_ready() ? stream_known(handle, per_thread) : NULL;
	bool captured = driver_ready() && was_captured(asked, stream);
	CUresult result = function(handle, graph);

	if (!captured || is_captured(asked))
		return result;
	atomic_fetch_sub(&capture_count, 1);
	if (stream) {
		atomic_store(&stream->capturing, 0);
		atomic_store(&stream->since_gate, UINT64_MAX / 2);
	}
	return result;
}

#define BEGIN(name, per_thread, parameters, arguments)               \
	EXPORT CUresult name parameters                              \
	{                                                            \
		struct stream *captured = begin(stream, per_thread); \
                                                                     \
		return begun(captured, real(name) arguments);        \
	}
#define END(name, per_thread)                                      \
	EXPORT CUresult name(CUstream stream, CUgraph *graph)      \
	{                                                          \
		driver_ready();                                    \
		return end(stream, per_thread, graph, real(name)); \
	}
#define TO_GRAPH                                                                                 \
	(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges, \
	 size_t count, CUstreamCaptureMode mode)

BEGIN(cuStreamBeginCapture, false, (CUstream stream), (stream))
BEGIN(cuStreamBeginCapture_ptsz, true, (CUstream stream), (stream))
BEGIN(cuStreamBeginCapture_v2, false, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, true, (CUstream stream, CUstreamCaptureMode mode),
      (stream, mode))
BEGIN(cuStreamBeginCaptureToGraph, false, TO_GRAPH, (stream, graph, nodes, edges, count, mode))
BEGIN(cuStreamBeginCaptureToGraph_ptsz, true, TO_GRAPH, (stream, graph, nodes, edges, count, mode))
END(cuStreamEndCapture, false)
END(cuStreamEndCapture_ptsz, true)
