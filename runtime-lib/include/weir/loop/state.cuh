/* What a block of a loop knows: class loop, and what it has in shared memory.
 *
 * A block has as many slots for callbacks as weir_loop_options says, numbered from 0 on. The first
 * WEIR_LOOP_SHARED of them are in shared memory, the others in device memory. A new callback takes
 * the first free one. So a chain of tasks, each of which posts the next, alternates between two
 * slots in shared memory. */
#pragma once

#include <cstdint>

#include "weir/loop-abi.h"
#include "weir/loop/memory.cuh"

/* Callbacks in shared memory, of each block; the others are in device memory. 0 leaves the shared
 * memory to the program. */
#ifndef WEIR_LOOP_SHARED
#define WEIR_LOOP_SHARED 2
#endif

namespace weir
{

using loop_args = weir_loop_args;

class loop;

namespace detail
{

/* Of a block, in shared memory. */
struct shared {
	weir_loop_args args;
	/* What the first thread found for the others, between two barriers. */
	uint32_t news;   /* callbacks whose answers came */
	uint32_t leaves; /* all must leave */
#if WEIR_LOOP_SHARED
	weir_loop_callback callbacks[WEIR_LOOP_SHARED];
#endif
};

inline __device__ shared &here()
{
	__shared__ shared s;
	return s;
}

using invoke_function = void (*)(loop &, const void *, int64_t);

template <uint32_t Chunk, class Body, class Then>
__device__ void each_from(loop &l, uint32_t *ticket, uint32_t total, uint32_t n, Body body,
			  Then then);

} // namespace detail

/* Of one block. Every thread has one, a variable of the kernel, and all of them are the same. */
class loop
{
      public:
	__device__ explicit loop(const weir_loop_args &args);
	loop(const loop &) = delete;
	loop &operator=(const loop &) = delete;

	/* Runs the loop: @start when the block begins, then callbacks until none is left or the
	 * kernel must leave. In a later launch it goes on with the callbacks alone. The kernel
	 * should end behind it. */
	template <class F> __device__ void run(F start);

	/* @task(l) runs after the callbacks that are due before it. */
	template <class F> __device__ int post_task(F task);

	/* For long loops: false nearly always. True: the kernel is to leave, or an answer has come;
	 * @task is posted, and the caller must return. False also if there is no room for @task. */
	template <class F> __device__ bool post_task_if_necessary(F task);

	/* The same where more must be saved than a lambda holds: if the block is to leave,
	 * @save(l) saves it and posts what goes on later. True: it did, and the caller must return.
	 */
	template <class F> __device__ bool yield_if_needed(F save);

	/* The whole loop ends: no block runs another callback, and weir_loop_run() says @code. */
	__device__ void exit(int code);

	/* True: a callback can be registered now. */
	__device__ bool has_room() const
	{
		return unused_ != 0;
	}

	/* For the functions below: registers @callback for the answer to a request. @deliver: where
	 * results of 1..WEIR_LOOP_INLINE bytes go; nullptr: the result counts none. The request is
	 * sent when the callback that runs now has returned. */
	template <class F>
	__device__ int request(const weir_loop_request &request, void *deliver, F callback);
	/* The same with @size bytes of inline data. */
	template <class F>
	__device__ int request_with(weir_loop_request request, const void *data, uint64_t size,
				    void *deliver, F callback);
	/* What came with the answer that the running callback is for: RECEIVE_ANY, SIZE. */
	__device__ uint64_t value() const;

      private:
	template <uint32_t Chunk, class Body, class Then>
	friend __device__ void detail::each_from(loop &l, uint32_t *ticket, uint32_t total,
						 uint32_t n, Body body, Then then);

	__device__ uint32_t mask_() const
	{
		return ~0u >> (WEIR_LOOP_CALLBACKS_MAX - detail::here().args.callbacks);
	}
	__device__ weir_loop_block &block_() const
	{
		return detail::here().args.blocks[detail::block()];
	}
	__device__ weir_loop_device &device_() const
	{
		return *detail::here().args.device;
	}
	__device__ uint32_t slot_(uint32_t i) const
	{
		return detail::block() * detail::here().args.callbacks + i;
	}
	__device__ weir_loop_callback &callback_(uint32_t i) const
	{
#if WEIR_LOOP_SHARED
		if (i < WEIR_LOOP_SHARED)
			return detail::here().callbacks[i];
#endif
		return block_().callbacks[i];
	}

	/* post.cuh */
	template <class F>
	__device__ int claim_(F callback, detail::invoke_function invoke, void *deliver);
	__device__ void queue_(uint32_t i, const weir_loop_request &request);
	__device__ void flush_();
	/* poll.cuh */
	template <class F> __device__ bool must_return_(F work);
	__device__ bool look_(bool busy);
	__device__ void poll_(uint64_t now, bool busy);
	__device__ uint32_t take_answers_(uint32_t taken, detail::pair ahead);
	__device__ bool all_wait_(uint64_t now);
	__device__ bool await_(bool busy);
	/* run.cuh */
	__device__ bool next_();
	__device__ void dispatch_();
	__device__ void deliver_(void *to, uint32_t slot, uint32_t size);
	__device__ void load_();
	__device__ void begin_();
	__device__ void leave_(bool ended);

	/* The same in all threads. Bits are of slots; those that the block does not have are in
	 * none. */
	uint32_t unused_ = 0, ready_ = 0, requests_ = 0;
	uint32_t last_ = 0; /* the slot whose callback runs, or ran last */
	/* The batch that the running callback has asked for. */
	uint32_t queued_ = WEIR_LOOP_NO_SLOT, queue_end_ = WEIR_LOOP_NO_SLOT;
	/* Of the first thread: clock64() of the next look at device memory. */
	int64_t next_look_ = 0;
};

inline __device__ loop::loop(const weir_loop_args &args)
{
	if (detail::first_thread())
		detail::here().args = args;
	detail::barrier();
	unused_ = mask_();
}

} // namespace weir
