#include "capture.h"

#include "worker.h"

_Atomic int capture_count;

void capture_gone(struct stream *stream)
{
	if (atomic_exchange(&stream->capturing, 0))
		atomic_fetch_sub(&capture_count, 1);
}

static struct stream *begin(CUstream handle, bool per_thread)
{
	struct stream *stream = driver_ready() ? stream_find(handle, per_thread) : NULL;

	if (stream && !atomic_exchange(&stream->capturing, 1)) {
		atomic_fetch_add(&capture_count, 1);
		worker_grace();
	}
	return stream;
}

static CUresult begun(struct stream *stream, CUresult result)
{
	if (stream && result != CUDA_SUCCESS)
		capture_gone(stream);
	/* The graph is gated where it is launched; inside it, gates come by the work between them.
	 */
	if (stream)
		atomic_store(&stream->since_gate, 0);
	return result;
}

static CUresult end(CUstream handle, bool per_thread, CUgraph *graph,
		    CUresult (*function)(CUstream, CUgraph *))
{
	struct stream *stream = driver_ready() ? stream_known(handle, per_thread) : NULL;
	CUresult result = function(handle, graph);

	if (stream) {
		capture_gone(stream);
		atomic_store(&stream->since_gate, UINT64_MAX / 2);
	}
	return result;
}

EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
	struct stream *captured = begin(stream, false);

	return begun(captured, real(cuStreamBeginCapture)(stream));
}

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
	struct stream *captured = begin(stream, true);

	return begun(captured, real(cuStreamBeginCapture_ptsz)(stream));
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	struct stream *captured = begin(stream, false);

	return begun(captured, real(cuStreamBeginCapture_v2)(stream, mode));
}

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	struct stream *captured = begin(stream, true);

	return begun(captured, real(cuStreamBeginCapture_v2_ptsz)(stream, mode));
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					    const CUgraphNode *nodes, const CUgraphEdgeData *edges,
					    size_t count, CUstreamCaptureMode mode)
{
	struct stream *captured = begin(stream, false);

	return begun(captured,
		     real(cuStreamBeginCaptureToGraph)(stream, graph, nodes, edges, count, mode));
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
						 const CUgraphNode *nodes,
						 const CUgraphEdgeData *edges, size_t count,
						 CUstreamCaptureMode mode)
{
	struct stream *captured = begin(stream, true);

	return begun(captured, real(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, nodes, edges,
								      count, mode));
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	driver_ready();
	return end(stream, false, graph, real(cuStreamEndCapture));
}

EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	driver_ready();
	return end(stream, true, graph, real(cuStreamEndCapture_ptsz));
}
