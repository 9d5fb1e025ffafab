#include "gates/expect.h"

#include "client/stream.h"
#include "client/worker.h"

#include "weir/log.h"

#include <string.h>
#include <sys/mman.h>

#define MISSED 4u /* times as long as the GPU was kept for no launch, nothing keeps it */

struct expecting expecting_table[CLIENTS_MAX];
_Atomic uint32_t expect_holding;
static enum expect_way way;

/* One thread waits until word 0 has reached @number, or for @span ns, and says so in `done`. A
 * read of host memory takes the GPU about 1 us, so the loop also ends where the timer stands. */
static const char waiting_ptx[] =
	".version 6.3\n"
	".target sm_70\n"
	".address_size 64\n"
	".visible .entry weir_wait(.param .u64 words, .param .u32 number, .param .u64 span)\n"
	"{\n"
	"  .reg .pred %p;\n"
	"  .reg .b32 %number, %seen, %left;\n"
	"  .reg .b64 %words, %span, %began, %now;\n"
	"  ld.param.u64 %words, [words];\n"
	"  ld.param.u32 %number, [number];\n"
	"  ld.param.u64 %span, [span];\n"
	"  mov.u32 %left, 4096;\n"
	"  mov.u64 %began, %globaltimer;\n"
	"WAIT:\n"
	"  ld.volatile.u32 %seen, [%words];\n"
	"  sub.u32 %seen, %seen, %number;\n"
	"  setp.ge.s32 %p, %seen, 0;\n"
	"  @%p bra LAUNCHED;\n"
	"  nanosleep.u32 200;\n"
	"  sub.u32 %left, %left, 1;\n"
	"  setp.eq.u32 %p, %left, 0;\n"
	"  @%p bra END;\n"
	"  mov.u64 %now, %globaltimer;\n"
	"  sub.u64 %now, %now, %began;\n"
	"  setp.lt.u64 %p, %now, %span;\n"
	"  @%p bra WAIT;\n"
	"  bra END;\n"
	"LAUNCHED:\n"
	"  mov.u64 %began, %globaltimer;\n"
	"ARRIVES:\n"
	"  nanosleep.u32 200;\n"
	"  sub.u32 %left, %left, 1;\n"
	"  setp.eq.u32 %p, %left, 0;\n"
	"  @%p bra END;\n"
	"  mov.u64 %now, %globaltimer;\n"
	"  sub.u64 %now, %now, %began;\n"
	"  setp.lt.u64 %p, %now, 40000;\n"
	"  @%p bra ARRIVES;\n"
	"END:\n"
	"  st.volatile.u32 [%words+64], %number;\n"
	"  ret;\n"
	"}\n";
static_assert(offsetof(struct expect_words, done) == 64, "as in the kernel");

enum expect_way expect_way(void)
{
	return way;
}

void expect_settings(void)
{
	static const char *const names[] = {"demand", "write", "memset", "kernel", "off"};
	const char *setting = getenv("WEIR_EXPECT");

	way = EXPECT_DEMAND;
	for (size_t i = 0; setting && i < countof(names); i++) {
		if (strcmp(setting, names[i]) == 0)
			way = (enum expect_way)i;
	}
}

/* Does a launch come sooner if the GPU switches to this client now? */
static bool worthwhile(const struct client *client, const struct level_binding *binding)
{
	return way != EXPECT_DEMAND && way != EXPECT_OFF && !client->concurrent &&
	       load_relaxed(&control_page(binding)->below) && !atomic_load(&capture_count);
}

static CUresult put_kernel(const struct expecting *expecting, uint32_t number, uint64_t ns)
{
	struct expect_params params = {expecting->words_gpu, number, ns};
	size_t size = sizeof(params);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	return real(cuLaunchKernel)(expecting->kernel, 1, 1, 1, 1, 1, 1, 0, expecting->stream, NULL,
				    extra);
}

static CUresult put_write(const struct expecting *expecting, CUdeviceptr to, uint32_t number)
{
	CUstreamBatchMemOpParams write = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			       .address = to,
			       .value = number}};

	return real(cuStreamBatchMemOp_v2)(expecting->stream, 1, &write, 0);
}

/* Each way ends by writing @number to `done`. */
static CUresult put(const struct expecting *expecting, uint32_t number, uint64_t ns)
{
	CUdeviceptr done = expecting->words_gpu + offsetof(struct expect_words, done);

	beside_captures();
	if (way == EXPECT_KERNEL)
		return put_kernel(expecting, number, ns);
	if (way == EXPECT_MEMSET)
		return real(cuMemsetD32Async)(done, number, 1, expecting->stream);
	return put_write(expecting, done, number);
}

static void refuse(struct expecting *expecting, CUresult result)
{
	atomic_store(&expecting->state, EXPECT_REFUSED);
	log_limited(LOG_INFO, 60, "the GPU cannot be kept for expected launches (error %d)",
		    result);
}

/* By one thread at a time. */
static void keep(struct expecting *expecting, uint64_t ns)
{
	uint32_t former = atomic_load(&expecting->begun), number = former + 1;
	uint64_t now = client_now();

	number += !number; /* 0 is none */
	/* The former one may wait for its turn on the GPU still: a queue of them helps nobody. */
	if (now < atomic_load(&expecting->not_before) ||
	    atomic_load(&expecting->words->done) != former)
		return;
	atomic_store(&expecting->begun, number);
	atomic_store(&expecting->since, now);
	atomic_store(&expecting->until, now + ns);
	atomic_fetch_add(&expect_holding, 1);
	atomic_store(&expecting->held, number);
	CUresult result = put(expecting, number, ns);
	if (result != CUDA_SUCCESS)
		refuse(expecting, result);
}

void expect_begin(struct client *client, const struct level_binding *binding, uint64_t ns)
{
	struct expecting *expecting = expecting_of(client);
	int state = atomic_load(&expecting->state);

	if (!worthwhile(client, binding))
		return;
	if (state == EXPECT_NONE &&
	    atomic_compare_exchange_strong(&expecting->state, &state, EXPECT_WANTED))
		worker_wake();
	if (state != EXPECT_READY || atomic_exchange(&expecting->beginning, 1))
		return;
	keep(expecting, smaller(ns, EXPECT_MAX));
	atomic_store(&expecting->beginning, 0);
}

void expect_end(struct client *client, bool came)
{
	struct expecting *expecting = expecting_of(client);
	uint32_t number = atomic_exchange(&expecting->held, 0);

	if (!number)
		return;
	atomic_store(&expecting->words->released, number);
	atomic_fetch_sub(&expect_holding, 1);
	uint64_t now = client_now(), since = atomic_load(&expecting->since);
	if (came || now <= since)
		return;
	atomic_fetch_add(&expecting->misses, 1);
	atomic_store(&expecting->not_before, now + MISSED * (now - since));
}

/* Worker. */

static CUresult make_words(struct expecting *expecting)
{
	if (!expecting->words) {
		void *memory = mmap(NULL, WEIR_PAGE_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		madvise(memory, WEIR_PAGE_SIZE, MADV_DONTFORK);
		expecting->words = memory;
	}
	CUresult result = real(cuMemHostRegister_v2)(expecting->words, WEIR_PAGE_SIZE,
						     CU_MEMHOSTREGISTER_DEVICEMAP |
							     CU_MEMHOSTREGISTER_PORTABLE);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		return result;
	return real(cuMemHostGetDevicePointer_v2)(&expecting->words_gpu, expecting->words, 0);
}

static CUresult load_kernel(struct expecting *expecting)
{
	CUmodule module;
	CUresult result = real(cuModuleLoadData)(&module, waiting_ptx);

	return result == CUDA_SUCCESS
		       ? real(cuModuleGetFunction)(&expecting->kernel, module, "weir_wait")
		       : result;
}

/* The first one waits for nothing: it pays for what the driver does at a first launch, and `done`
 * shows that it works. Module, stream and registration end with their context. */
static CUresult make(struct expecting *expecting)
{
	beside_captures();
	CUresult result = make_words(expecting);

	if (result == CUDA_SUCCESS && way == EXPECT_KERNEL)
		result = load_kernel(expecting);
	if (result == CUDA_SUCCESS)
		result = real(cuStreamCreate)(&expecting->stream, CU_STREAM_NON_BLOCKING);
	if (result != CUDA_SUCCESS)
		return result;
	atomic_store(&expecting->begun, 1);
	atomic_store(&expecting->words->done, 0);
	atomic_store(&expecting->words->released, 1);
	return put(expecting, 1, 0);
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
}

void expect_drive(struct client *client, struct tick *tick)
{
	struct expecting *expecting = expecting_of(client);

	(void)tick;
	if (!can_make(client))
		return;
	CUresult result = make(expecting);
	if (result != CUDA_SUCCESS) {
		refuse(expecting, result);
		return;
	}
	atomic_store(&expecting->state, EXPECT_READY);
	log_debug("the GPU can be kept for expected launches");
}

void expect_work(struct client *client, struct tick *tick)
{
	const struct expecting *expecting = expecting_of(client);

	if (atomic_load(&expecting->held) && tick->now >= atomic_load(&expecting->until))
		expect_end(client, false);
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

/* The words stay: a thread in the middle of a call may use them. */
void expect_init(struct client *client)
{
	struct expecting *expecting = expecting_of(client);

	atomic_store(&expecting->not_before, 0);
	atomic_store(&expecting->misses, 0);
	atomic_store(&expecting->state, EXPECT_NONE);
}

/* The child has no such pages. */
void expect_fork(void)
{
	memset(expecting_table, 0, sizeof(expecting_table));
	atomic_store(&expect_holding, 0);
}
