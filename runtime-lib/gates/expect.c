#include "gates/expect.h"

#include "client/stream.h"
#include "client/worker.h"
#include "gates/demand.h"

#include "weir/log.h"

#include <string.h>
#include <sys/mman.h>

#define MISSED 4u /* times as long as the GPU was kept for no launch, nothing keeps it */

struct expecting expecting_table[CLIENTS_MAX];
_Atomic uint32_t expect_holding;
static enum expect_way way;

/* One thread waits until @released has reached @number, or for @span ns. A read of host memory
 * takes the GPU about 1 us, so the loop also ends where the timer stands. */
static const char waiting_ptx[] =
	".version 6.3\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry weir_wait(.param .u64 released, .param .u32 number, .param .u64 span)\n"
	"{\n"
	"  .reg .pred %p;\n"
	"  .reg .b32 %number, %seen, %left;\n"
	"  .reg .b64 %released, %span, %began, %now;\n"
	"  ld.param.u64 %released, [released];\n"
	"  ld.param.u32 %number, [number];\n"
	"  ld.param.u64 %span, [span];\n"
	"  mov.u32 %left, 4096;\n"
	"  mov.u64 %began, %globaltimer;\n"
	"WAIT:\n"
	"  ld.volatile.u32 %seen, [%released];\n"
	"  sub.u32 %seen, %seen, %number;\n"
	"  setp.ge.s32 %p, %seen, 0;\n"
	"  @%p bra END;\n"
	"  nanosleep.u32 200;\n"
	"  sub.u32 %left, %left, 1;\n"
	"  setp.eq.u32 %p, %left, 0;\n"
	"  @%p bra END;\n"
	"  mov.u64 %now, %globaltimer;\n"
	"  sub.u64 %now, %now, %began;\n"
	"  setp.lt.u64 %p, %now, %span;\n"
	"  @%p bra WAIT;\n"
	"END:\n"
	"  ret;\n"
	"}\n";

enum expect_way expect_way(void)
{
	return way;
}

void expect_settings(void)
{
	static const char *const names[] = {"kernel", "demand", "off"};
	const char *setting = getenv("WEIR_EXPECT");

	way = EXPECT_KERNEL;
	for (size_t i = 0; setting && i < countof(names); i++) {
		if (strcmp(setting, names[i]) == 0)
			way = (enum expect_way)i;
	}
}

/* Does a launch come sooner if the GPU switches to this client now? */
static bool worthwhile(const struct client *client, const struct level_binding *binding)
{
	return way == EXPECT_KERNEL && !client->concurrent &&
	       load_relaxed(&control_page(binding)->below) && !binding_closed(binding) &&
	       !atomic_load(&capture_count);
}

static CUresult put(const struct expecting *expecting, CUstream stream, uint32_t number,
		    uint64_t ns)
{
	struct expect_params params = {expecting->released_gpu, number, ns};
	size_t size = sizeof(params);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	return real(cuLaunchKernel)(expecting->kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
}

static void refuse(struct expecting *expecting, CUresult result)
{
	atomic_store(&expecting->state, EXPECT_REFUSED);
	log_limited(LOG_INFO, 60, "the GPU cannot be kept for expected launches (error %d)",
		    result);
}

/* Asks the driver, too: a copy, or our previous kernel, may still wait for its turn on the GPU. */
static bool is_idle(struct stream *stream)
{
	return !stream_outstanding(stream) && real(cuStreamQuery)(stream->handle) == CUDA_SUCCESS;
}

/* Keeps the GPU for @ns at most. One thread at a time. @ends: the count before the caller decided
 * to call this. */
static void keep(struct expecting *expecting, struct stream *stream, uint64_t ns, uint32_t ends)
{
	uint32_t number = atomic_load(&expecting->begun) + 1;
	uint64_t now = client_now();

	number += !number; /* 0 is none */
	if (atomic_load(&expecting->held) || now < atomic_load(&expecting->not_before))
		return;
	beside_captures();
	if (!is_idle(stream))
		return;
	atomic_store(&expecting->begun, number);
	atomic_store(&expecting->since, now);
	atomic_store(&expecting->until, now + ns);
	atomic_fetch_add(&expect_holding, 1);
	atomic_store(&expecting->held, number);
	if (atomic_load(&expecting->ends) != ends) {
		expect_end(stream->client, true);
		return;
	}
	CUresult result = put(expecting, stream->handle, number, ns);
	if (result == CUDA_SUCCESS)
		return;
	expect_end(stream->client, true);
	refuse(expecting, result);
}

/* False: there was none, or another thread has just taken it. */
static bool take_plan(struct expecting *expecting)
{
	return atomic_load(&expecting->planned) && atomic_exchange(&expecting->planned, 0);
}

static void drop_plan(struct expecting *expecting)
{
	if (take_plan(expecting))
		atomic_fetch_sub(&expect_holding, 1);
}

/* The worker is to call keep() at @at. One thread at a time. Not for per-thread default streams:
 * the worker cannot name another thread's. */
static void plan(struct expecting *expecting, struct stream *stream, uint64_t at)
{
	if (atomic_load(&stream->per_thread))
		return;
	atomic_fetch_add(&expect_holding, 1);
	atomic_store(&expecting->planned_in, stream);
	atomic_store(&expecting->planned, at);
	worker_alarm();
}

void expect_begin(struct stream *stream, const struct level_binding *binding, uint64_t ns)
{
	struct expecting *expecting = expecting_of(stream->client);
	int state = atomic_load(&expecting->state);

	if (!worthwhile(stream->client, binding))
		return;
	if (state == EXPECT_NONE &&
	    atomic_compare_exchange_strong(&expecting->state, &state, EXPECT_WANTED))
		worker_wake();
	if (state != EXPECT_READY || atomic_exchange(&expecting->beginning, 1))
		return;
	drop_plan(expecting);
	if (ns > EXPECT_MAX)
		plan(expecting, stream, client_now() + ns - EXPECT_MAX);
	else
		keep(expecting, stream, ns + SPECULATION_SLACK, atomic_load(&expecting->ends));
	atomic_store(&expecting->beginning, 0);
}

void expect_end(struct client *client, bool came)
{
	struct expecting *expecting = expecting_of(client);

	drop_plan(expecting);
	atomic_fetch_add(&expecting->ends, 1);
	uint32_t number = atomic_exchange(&expecting->held, 0);
	if (!number)
		return;
	atomic_store(expecting->released, number);
	atomic_fetch_sub(&expect_holding, 1);
	uint64_t now = client_now(), since = atomic_load(&expecting->since);
	if (came || now <= since)
		return;
	atomic_fetch_add(&expecting->misses, 1);
	atomic_store(&expecting->not_before, now + MISSED * (now - since));
}

static void wait_begins(void)
{
	struct client *client = load_relaxed(&expect_holding) ? client_here() : NULL;

	if (client)
		expect_end(client, false);
}

/* Worker. */

static CUresult make_word(struct expecting *expecting)
{
	if (!expecting->released) {
		void *memory = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		madvise(memory, WEIR_PAGE_SIZE, MADV_DONTFORK);
		expecting->released = memory;
	}
	CUresult result = real(cuMemHostRegister_v2)(expecting->released, WEIR_PAGE_SIZE,
						     CU_MEMHOSTREGISTER_DEVICEMAP |
							     CU_MEMHOSTREGISTER_PORTABLE);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		return result;
	return real(cuMemHostGetDevicePointer_v2)(&expecting->released_gpu, expecting->released, 0);
}

static CUresult load_kernel(struct expecting *expecting)
{
	CUmodule module;
	CUresult result = real(cuModuleLoadData)(&module, waiting_ptx);

	return result == CUDA_SUCCESS
		       ? real(cuModuleGetFunction)(&expecting->kernel, module, "weir_wait")
		       : result;
}

/* The driver needs longer for a kernel's first launch. This one waits for nothing, in a stream of
 * ours. */
static CUresult launch_first(struct expecting *expecting)
{
	CUstream stream;
	CUresult result = real(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);

	if (result != CUDA_SUCCESS)
		return result;
	atomic_store(&expecting->begun, 1);
	atomic_store(expecting->released, 1);
	result = put(expecting, stream, 1, 0);
	real(cuStreamDestroy_v2)(stream);
	return result;
}

/* Module and registration end with their context. */
static CUresult make(struct expecting *expecting)
{
	beside_captures();
	CUresult result = make_word(expecting);

	if (result == CUDA_SUCCESS)
		result = load_kernel(expecting);
	return result == CUDA_SUCCESS ? launch_first(expecting) : result;
}

/* Loading code waits for all that runs in the context. */
static bool can_make(const struct client *client)
{
	if (atomic_load(&expecting_of(client)->state) != EXPECT_WANTED ||
	    atomic_load(&capture_count))
		return false;
	stream_for_each (s, client) {
		if (stream_outstanding(s))
			return false;
	}
	return true;
}

void expect_look(struct client *client, struct tick *tick)
{
	tick->forms |= can_make(client);
	tick->due |= worker_await(&expecting_of(client)->planned, tick) != 0;
}

/* Does the worker still know the stream? It does not touch it where a capture has begun. */
static bool is_there(const struct stream *stream, const struct client *client)
{
	return atomic_load(&stream->key) > STREAM_GOES && stream->client == client &&
	       !atomic_load(&capture_count);
}

/* With the plan taken. */
static void keep_as_planned(struct client *client, const struct level_binding *binding, uint64_t at,
			    uint32_t ends)
{
	struct expecting *expecting = expecting_of(client);
	struct stream *stream = atomic_load(&expecting->planned_in);
	uint64_t late = client_now() - at;

	if (late < EXPECT_LATE && binding && worthwhile(client, binding) &&
	    is_there(stream, client))
		keep(expecting, stream, EXPECT_MAX + SPECULATION_SLACK, ends);
	log_limited(LOG_DEBUG, 1, "an expected launch: %s %llu us after the planned moment",
		    atomic_load(&expecting->held) ? "the GPU is kept" : "nothing is done",
		    (unsigned long long)(late / NS_PER_US));
}

static void follow_plan(struct client *client, const struct level_binding *binding)
{
	struct expecting *expecting = expecting_of(client);

	if (atomic_exchange(&expecting->beginning, 1))
		return;
	uint32_t ends = atomic_load(&expecting->ends);
	uint64_t at = atomic_load(&expecting->planned);
	if (client_now() >= at && take_plan(expecting)) {
		keep_as_planned(client, binding, at, ends);
		atomic_fetch_sub(&expect_holding, 1);
	}
	atomic_store(&expecting->beginning, 0);
}

void expect_drive(struct client *client, struct tick *tick)
{
	struct expecting *expecting = expecting_of(client);

	if (tick->due)
		follow_plan(client, tick->binding);
	if (!can_make(client))
		return;
	CUresult result = make(expecting);
	if (result != CUDA_SUCCESS) {
		refuse(expecting, result);
		return;
	}
	atomic_store(&driver_before_wait, wait_begins);
	atomic_store(&expecting->state, EXPECT_READY);
	log_debug("the GPU can be kept for expected launches");
}

void expect_work(struct client *client, struct tick *tick)
{
	const struct expecting *expecting = expecting_of(client);

	if (atomic_load(&expecting->held) && tick->now >= atomic_load(&expecting->until))
		expect_end(client, false);
}

void expect_stream_gone(struct stream *stream)
{
	expect_synchronizes(stream->client);
}

void expect_stop(struct client *client)
{
	expect_end(client, true);
}

void expect_forget(struct client *client)
{
	atomic_store(&expecting_of(client)->state, EXPECT_REFUSED);
	expect_end(client, true);
}

/* The word stays: a thread in the middle of a call may use it. */
void expect_init(struct client *client)
{
	struct expecting *expecting = expecting_of(client);

	drop_plan(expecting);
	atomic_store(&expecting->not_before, 0);
	atomic_store(&expecting->misses, 0);
	atomic_store(&expecting->state, EXPECT_NONE);
}

/* The child has no such page. */
void expect_fork(void)
{
	memset(expecting_table, 0, sizeof(expecting_table));
	atomic_store(&expect_holding, 0);
}
