/* What loops of this folder do as a whole block: all threads call, and get the same. */
#pragma once

#include <weir/loop.cuh>

/* The value that *@word had before @more was added to it. Orders memory: what other blocks wrote
 * before their additions is seen behind this one. */
template <class T> static __device__ T block_add(T *word, T more)
{
	__shared__ T before;

	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		before = atomicAdd(word, more);
		__threadfence();
	}
	__syncthreads();
	return before;
}

/* True: @result is no error. Else the loop ends with it. */
static __device__ bool is_good(weir::loop &l, int64_t result)
{
	if (result < 0)
		l.exit(static_cast<int>(result));
	return result >= 0;
}

/* True: all @wanted bytes came. Else the loop ends with the error. */
static __device__ bool is_whole(weir::loop &l, int64_t bytes, uint64_t wanted)
{
	return is_good(l, bytes == static_cast<int64_t>(wanted) || bytes < 0 ? bytes : -EIO);
}

/* What another block has written to @word. What it wrote before can be read, by all threads behind a barrier. */
static __device__ int32_t acquire(const int32_t *word)
{
	int32_t number;

	asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
		     : "=r"(number)
		     : "l"(__cvta_generic_to_global(word))
		     : "memory");
	return number;
}

/* A number that another block writes, when it does: @word is below 0 until then. @ready(l, number);
 * until then the block looks every LOOK_NS, LOOKS times, and after that every RETRY_NS. A timer asks the
 * host, which has other things to do while many blocks wait for a number at their start. */
#define LOOK_NS  2000
#define LOOKS    2000
#define RETRY_NS 200000
template <class Ready>
static __device__ void when_known(weir::loop &l, int32_t *word, Ready ready, unsigned looks = 0)
{
	int32_t number = *static_cast<volatile int32_t *>(word);

	if (!__syncthreads_or(number < 0)) {
		__threadfence();
		ready(l, number);
	} else if (looks < LOOKS) {
		__nanosleep(LOOK_NS);
		l.post_task([=](weir::loop &later) { when_known(later, word, ready, looks + 1); });
	} else {
		weir::timer::after(l, RETRY_NS,
				   [=](weir::loop &later, int64_t) { when_known(later, word, ready, looks); });
	}
}

/* Tells the other blocks. */
static __device__ void make_known(int32_t *word, int32_t number)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		*static_cast<volatile int32_t *>(word) = number;
	}
	__syncthreads();
}
