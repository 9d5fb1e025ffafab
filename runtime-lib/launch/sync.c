/* Hooks of calls after which work is known to be finished: demand can end at once. */
#include "client/stream.h"
#include "client/worker.h"
#include "gates/demand.h"
#include "gates/expect.h"
#include "launch/uncounted.h"
#include "memory/memory.h"

struct finish {
	struct stream *stream;
	struct progress progress;
};

/* @waits: the call does. */
static struct finish finish_begin(CUstream handle, bool per_thread, bool waits)
{
	struct stream *stream = driver_ready() ? stream_known(handle, per_thread) : NULL;

	if (waits && stream)
		expect_synchronizes(stream->client);
	else if (waits)
		driver_waits();
	return (struct finish){stream, stream ? stream_progress(stream) : (struct progress){0}};
}

static CUresult finish_end(const struct finish *finish, CUresult result)
{
	if (finish->stream && result == CUDA_SUCCESS) {
		uncounted_end(finish->stream);
		stream_completed(finish->stream, &finish->progress);
		demand_settle(finish->stream->client);
	}
	memory_look();
	return result;
}

#define FINISHES_STREAM(name, per_thread, waits)                                \
	EXPORT CUresult name(CUstream stream)                                   \
	{                                                                       \
		struct finish finish = finish_begin(stream, per_thread, waits); \
                                                                                \
		return finish_end(&finish, real(name)(stream));                 \
	}
FINISHES_STREAM(cuStreamSynchronize, false, true)
FINISHES_STREAM(cuStreamSynchronize_ptsz, true, true)
FINISHES_STREAM(cuStreamQuery, false, false)
FINISHES_STREAM(cuStreamQuery_ptsz, true, false)

/* Of a whole context. The worker sees to streams beyond the first few. */
struct finish_all {
	struct client *client;
	uint32_t gone_level;
	size_t n;
	struct finish streams[64];
};

static void finish_all_begin(struct finish_all *all, CUcontext context)
{
	all->n = 0;
	all->client = context ? client_find(context) : NULL;
	if (!all->client)
		return;
	expect_synchronizes(all->client);
	all->gone_level = atomic_load(&streams_of(all->client)->gone_level);
	stream_for_each (s, all->client) {
		if (stream_outstanding(s) && all->n < countof(all->streams))
			all->streams[all->n++] = (struct finish){s, stream_progress(s)};
	}
}

static CUresult finish_all_end(const struct finish_all *all, CUresult result)
{
	memory_look();
	if (!all->client || result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < all->n; i++)
		stream_completed(all->streams[i].stream, &all->streams[i].progress);
	uint32_t gone_level = all->gone_level;
	atomic_compare_exchange_strong(&streams_of(all->client)->gone_level, &gone_level,
				       gone_level | STREAM_LEVEL_OWN);
	demand_settle(all->client);
	return result;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	struct finish_all all;

	finish_all_begin(&all, driver_ready() ? driver_context() : NULL);
	return finish_all_end(&all, real(cuCtxSynchronize)());
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct finish_all all;

	finish_all_begin(&all, driver_ready() ? context : NULL);
	return finish_all_end(&all, real(cuCtxSynchronize_v2)(context));
}

/* Some work is finished after these, it is not known which. */
static CUresult finish_some(CUresult result)
{
	struct client *client = driver_ready() ? client_here() : NULL;

	if (client)
		demand_some_finished(client);
	else
		worker_wake();
	memory_look();
	return result;
}

#define FINISHES_SOME(name, parameters, arguments)        \
	EXPORT CUresult name parameters                   \
	{                                                 \
		driver_ready();                           \
		driver_waits();                           \
		return finish_some(real(name) arguments); \
	}
FINISHES_SOME(cuEventSynchronize, (CUevent event), (event))
FINISHES_SOME(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size))
FINISHES_SOME(cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size))
FINISHES_SOME(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), (to, from, size))
FINISHES_SOME(cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t size), (to, from, size))
