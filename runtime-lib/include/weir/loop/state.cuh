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

constexpr uint32_t turn_answers = 32; /* the callback is for an answer */
constexpr uint32_t turn_none = 64;    /* there is no callback: look again */
constexpr uint32_t turn_leaves = 128; /* nor will there be one: all must leave */
constexpr uint32_t turn_asks = 256;   /* the callback that has returned has requests, of which the
					 host may know when all threads have returned from it */
constexpr uint32_t turn_rare = turn_answers | turn_none | turn_leaves | turn_asks;
constexpr uint32_t turn_first = 512; /* not in shared memory: this is the first thread */
constexpr uint32_t turn_where = 10;  /* the lowest bit of where() */

/* What all threads do between two barriers, as the first one has chosen. One access reads it, and
 * it is passed to the callback as it is. */
struct alignas(16) turn {
	uint64_t invoke; /* of the callback that is next */
	uint64_t words;  /* what() and unused() */

	/* slot(), turn_* and where(), from the lowest bit on. */
	__device__ uint32_t what() const
	{
		return static_cast<uint32_t>(words >> 32);
	}
	/* Of the loop, for this callback. */
	__device__ uint32_t unused() const
	{
		return static_cast<uint32_t>(words);
	}
	__device__ uint32_t slot() const
	{
		return what() & 31;
	}
	__device__ uint32_t is_first() const
	{
		return what() & turn_first;
	}
	/* The callback's address in shared memory; 0: it is in device memory. */
	__device__ uint32_t where() const
	{
		return what() >> turn_where;
	}
};

inline __device__ turn turn_of(uint64_t invoke, uint32_t unused, uint32_t what)
{
	return {invoke, uint64_t{what} << 32 | unused};
}

/* What the first thread of a block knows of its callbacks, in registers. Bits are of slots; those
 * that the block does not have are in none. */
struct knowledge {
	uint32_t unused, ready, requests;
	uint32_t running; /* the bit of the callback that runs */
	uint32_t last;    /* the slot of the last one */
};

/* What callbacks leave for the loop; of the first thread. One access reads it. */
struct alignas(16) notes {
	int64_t next_look; /* clock64() of the next look at device memory */
	uint32_t asked;    /* callbacks of the batch of requests that is not sent yet */
	uint16_t from, to; /* the batch's first slot and its last one, of the loop's */
};

/* Of a block, in shared memory. */
struct shared {
	weir_loop_args args;
	weir_loop_block *block;
	notes noted;
	/* One may be read while the other is written; ^ sizeof(turn) leads from each to the other.
	 */
	alignas(2 * sizeof(turn)) turn turns[2];
#if WEIR_LOOP_SHARED
	weir_loop_callback callbacks[WEIR_LOOP_SHARED];
#endif
};

inline __device__ shared &here()
{
	__shared__ shared s;
	return s;
}

/* Runs a callback. Returns which slots it leaves unused. */
using invoke_function = uint32_t (*)(turn, int64_t result);

template <class F, class Run> __device__ uint32_t with_state(const turn &t, Run run);

template <uint32_t Chunk, class Body>
__device__ uint32_t each_until(loop &l, uint32_t *ticket, uint32_t total, uint32_t n, Body body);

} // namespace detail

/* Of one block. Every thread has one, a variable of the kernel, and another in each callback: the
 * compiler keeps what no function has the address of in registers. */
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

	/* In place of run(), for a kernel that does nothing else than each_block(), and needs no
	 * callback: @body(l, n). All of it is one function then, without a call and with fewer
	 * registers, also when the kernel has come back. */
	template <uint32_t Chunk = 1, class Body>
	__device__ void run_each_block(uint32_t *ticket, uint32_t total, Body body);

	/* The same. @leaving() runs in each block before it leaves and when there are no more: it
	 * saves what threads carry from body to body. */
	template <uint32_t Chunk, class Body, class Leaving>
	__device__ void run_each_block(uint32_t *ticket, uint32_t total, Body body,
				       Leaving leaving);

	/* For long bodies of run_each_block(), without a barrier: each warp by itself, with all of
	 * its 32 threads. True: the block is to leave. The body saves where it is and returns
	 * false, in all warps to which this says true. body(l, n) runs again later, until it
	 * returns true in all threads. */
	__device__ bool warp_must_leave();

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
	/* Of a callback. */
	__device__ explicit loop(const detail::turn &turn)
	    : unused_(turn.unused()), first_(turn.is_first()), last_(turn.slot()),
	      next_look_(detail::here().noted.next_look)
	{
	}

	template <class F, class Run>
	friend __device__ uint32_t detail::with_state(const detail::turn &, Run);
	template <uint32_t Chunk, class Body>
	friend __device__ uint32_t detail::each_until(loop &l, uint32_t *ticket, uint32_t total,
						      uint32_t n, Body body);

	__device__ uint32_t mask_() const
	{
		return ~0u >> (WEIR_LOOP_CALLBACKS_MAX - detail::here().args.callbacks);
	}
	__device__ weir_loop_block &block_() const
	{
		return *detail::here().block;
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
	__device__ int claim_(F callback, detail::invoke_function invoke, void *deliver,
			      bool is_task);
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
	__device__ detail::turn choose_(detail::knowledge &known, uint32_t unused);
	__device__ bool search_(uint32_t &ready, uint32_t unused, bool asks);
	__device__ int64_t answer_(const detail::turn &turn);
	__device__ void deliver_(void *to, uint32_t slot, uint32_t size);
	__device__ void run_callbacks_(detail::knowledge &known);
	__device__ void load_(detail::knowledge &known);
	__device__ void begin_();
	__device__ void leave_(bool ended, const detail::knowledge &known);

	uint32_t unused_;   /* slots, as bits */
	uint32_t first_;    /* turn_first: this is the first thread; or 0 */
	uint32_t last_ = 0; /* the slot of the callback that runs */
	/* clock64() of the next look at device memory, of the first thread; in warp_must_leave(),
	 * of the first one of each warp. */
	int64_t next_look_ = 0;
};

inline __device__ loop::loop(const weir_loop_args &args)
    : first_(detail::first_thread() ? detail::turn_first : 0)
{
	if (first_) {
		detail::here().args = args;
		detail::here().block = &args.blocks[detail::block()];
		detail::here().noted = {0, 0, 0, 0};
	}
	detail::barrier();
	unused_ = mask_();
}

} // namespace weir
