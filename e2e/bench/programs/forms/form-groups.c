#include "form-groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AWAY_NS 30000u /* from the last leave until the SMs are given back */

/* The words of the launch, as the GPU saw them last. */
struct group_seen {
	volatile uint32_t ticket, quota, left, looks;
	volatile uint32_t stop; /* by the host */
};

/* Reads the host's memory only once in 64 looks: each read takes as long as a look. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry watch(.param .u64 words, .param .u64 seen)\n"
	"{ .reg .b64 %w, %s; .reg .b32 %t, %q, %l, %n, %x; .reg .pred %p;\n"
	"ld.param.u64 %w, [words]; ld.param.u64 %s, [seen]; mov.u32 %n, 0;\n"
	"LOOK: ld.volatile.global.u32 %l, [%w+24]; ld.volatile.global.u32 %q, [%w+36];\n"
	"ld.volatile.global.u32 %t, [%w+16]; add.u32 %n, %n, 1;\n"
	"st.volatile.global.v4.u32 [%s], {%t, %q, %l, %n};\n"
	"and.b32 %x, %n, 63; setp.ne.u32 %p, %x, 0; @%p bra LOOK;\n"
	"ld.volatile.global.u32 %x, [%s+16]; setp.eq.u32 %p, %x, 0; @%p bra LOOK;\n"
	"ret; }\n";
static_assert(offsetof(struct weir_words, ticket) == 16, "in the kernel");
static_assert(offsetof(struct weir_words, left) == 24, "in the kernel");
static_assert(offsetof(struct weir_words, quota) == 36, "in the kernel");

void group_watch_init(struct group_watch *watch)
{
	CU(cuModuleLoadData(&watch->module, ptx));
	CU(cuModuleGetFunction(&watch->function, watch->module, "watch"));
	CU(cuStreamCreate(&watch->stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&watch->seen, sizeof(*watch->seen), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&watch->seen_address, watch->seen, 0));
}

void group_watch_deinit(struct group_watch *watch)
{
	CU(cuStreamDestroy(watch->stream));
	CU(cuModuleUnload(watch->module));
	CU(cuMemFreeHost(watch->seen));
}

void group_watch_begin(struct group_watch *watch, CUdeviceptr words)
{
	void *parameters[] = {&words, &watch->seen_address};

	memset((void *)watch->seen, 0, sizeof(*watch->seen));
	CU(cuLaunchKernel(watch->function, 1, 1, 1, 1, 1, 1, 0, watch->stream, parameters, NULL));
	while (!watch->seen->looks)
		;
}

void group_watch_end(struct group_watch *watch)
{
	watch->seen->stop = 1;
	CU(cuStreamSynchronize(watch->stream));
}

/* Looks at the words, from a store of the host on. */
struct looks {
	CUstream stream;
	unsigned n;
	uint64_t begin, last, longest; /* ns; the longest time between two looks */
};

static struct looks set(struct form_page *page, uint32_t sms, CUstream stream)
{
	uint64_t now = now_ns();

	__atomic_store_n(&page->sms, sms, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->any, sms, __ATOMIC_SEQ_CST);
	return (struct looks){stream, 0, now, now, 0};
}

/* Called at each look: the stream has ended. */
static bool ended(struct looks *looks)
{
	uint64_t now = now_ns(), gap = now - looks->last;

	looks->last = now;
	looks->longest = gap > looks->longest ? gap : looks->longest;
	/* A query takes as long as some looks of the GPU. */
	return ++looks->n % 256 == 0 && cuStreamQuery(looks->stream) == CUDA_SUCCESS;
}

/* us; 0: the processor was away meanwhile. */
static double took(const struct group_watch *watch, struct looks *looks)
{
	ended(looks);
	return looks->longest > watch->unseen_ns ? 0 : (double)(looks->last - looks->begin) / 1e3;
}

static void pause_for(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

/* As pause_for(), and watches the draws. */
static void await_moment(const struct group_seen *seen, uint64_t ns, struct group_times *times)
{
	uint64_t begin = now_ns(), now = begin, last = begin;

	for (uint32_t before = 0, ticket; now < begin + ns; now = now_ns()) {
		ticket = seen->ticket;
		if (ticket == before)
			continue;
		double still = (double)(now - last) / 1e3;
		if (!before)
			times->drew_us = still;
		else if (still > times->still_us)
			times->still_us = still;
		before = ticket;
		last = now;
	}
	times->draws = seen->ticket;
	times->first = !times->draws;
}

static double since(const struct looks *looks)
{
	return (double)(looks->last - looks->begin) / 1e3;
}

/* Whether the SMs are free. Notes on the way when a worker knew, and when the first was gone. */
static bool has_left(const struct group_seen *seen, uint32_t gone, const struct looks *looks,
		     struct group_times *times)
{
	uint32_t left = seen->quota & WEIR_QUOTA_GONE;

	if (!times->knew_us && seen->ticket & WEIR_TICKET_ASKED)
		times->knew_us = since(looks);
	if (!times->gone_us && left)
		times->gone_us = since(looks);
	return seen->left >= gone && left >= gone;
}

struct group_times group_leave_and_return(struct group_watch *watch, struct form_page *page,
					  uint32_t left, uint32_t of, uint32_t workers,
					  uint64_t wait, CUstream stream)
{
	const struct group_seen *seen = watch->seen;
	uint32_t gone = (workers + 1) / of * left - 1, restart;
	struct group_times times = {0};
	struct looks looks;

	await_moment(seen, wait, &times);
	if (workers + 1 < of || seen->left) /* a small launch, or at its end */
		return times;
	looks = set(page, left, stream);
	while (!has_left(seen, gone, &looks, &times))
		if (ended(&looks))
			goto out;
	times.leave_us = took(watch, &looks);
	pause_for(AWAY_NS);
	looks = set(page, 0, stream);
	while (seen->left || seen->ticket & WEIR_TICKET_CLOSED)
		if (ended(&looks))
			goto out;
	restart = seen->ticket;
	while (seen->ticket - restart < workers - 1)
		if (ended(&looks) || seen->ticket < restart)
			goto out;
	times.return_us = took(watch, &looks);
out:
	set(page, 0, stream);
	return times;
}

void group_times_tell(const struct group_times *times, const char *kernel, uint64_t wait)
{
	fprintf(stderr,
		"%s: asked after %.1f us, %u draws, the first after %.1f us, then at most %.1f us "
		"without; known %.1f, first gone %.1f, left %.1f, back %.1f\n",
		kernel, (double)wait / 1e3, times->draws, times->drew_us, times->still_us,
		times->knew_us, times->gone_us, times->leave_us, times->return_us);
}
