/* The loop itself: which callback is next, and what a block does to leave the GPU and to come back.
 *
 * One barrier stands between two callbacks. All threads of the block have then finished the first,
 * and its slot may be written again. The first thread alone knows which callbacks there are. Before
 * the barrier it writes what all do next into one of two places in shared memory, in turns: all
 * have read one of them when they come to the next barrier. So the others do little between
 * callbacks.
 *
 * To leave, a block writes its callbacks in shared memory and three words of bits to device memory,
 * and counts itself. The last block to do so reports to the host.
 *
 * A launch has run from when its state is loaded until its blocks begin to leave: what it does
 * before and behind is the cost of a switch, and no callback can use that time. */
#pragma once

#include "weir/loop/poll.cuh"
#include "weir/loop/post.cuh"

namespace weir
{

/* First thread: one of the callbacks that are @ready: the next one behind the @last, so that none
 * waits for ever. */
inline __device__ void loop::pick_(detail::turn &turn, uint32_t ready, uint32_t requests,
				   uint32_t last, uint32_t unused)
{
	uint32_t behind = ready & ~(~0u >> (31 - last));
	uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(behind ? behind : ready)) - 1);
	uint32_t bit = 1u << i, what = i | (requests & bit ? detail::turn_answers : 0);

	ready_ = ready & ~bit;
	requests_ = requests & ~bit;
	running_ = bit;
	last_ = i;
#if WEIR_LOOP_SHARED
	if (i < WEIR_LOOP_SHARED) { /* by an access of that kind */
		turn = detail::turn_of(detail::here().callbacks[i].invoke, unused, what);
		return;
	}
#endif
	turn = detail::turn_of(block_().callbacks[i].invoke, unused, what);
}

/* First thread: looks for answers, and with nothing @ready waits until something comes. Not if the
 * callback that has returned @asks for something: the host must know first. True: all must leave.
 */
inline __device__ bool loop::search_(uint32_t &ready, uint32_t unused, bool asks)
{
	if (!ready && (asks || unused == mask_()))
		return !asks;
	if (!await_(ready != 0))
		return false;
	bool leaves = detail::peek(&device_().close) != 0;
	ready |= atomicExch(&block_().done, 0u);
	detail::fence_gpu(); /* data of the answers, also in the L1 cache */
	return leaves;
}

/* First thread: what all do next. True: the callback that has returned has requests, of which the
 * host may know when all threads have returned from it. */
inline __device__ bool loop::choose_(detail::turn &turn)
{
	uint32_t ready = ready_, requests = requests_, last = last_, unused = unused_ | running_;
	bool asks = queued_ != WEIR_LOOP_NO_SLOT, leaves = false;
	int64_t next_look = next_look_;

	asm volatile("" ::"l"(next_look)); /* all are read at the same time */
	if (!ready || clock64() >= next_look)
		leaves = search_(ready, unused, asks);
	if (ready && !leaves) {
		pick_(turn, ready, requests, last, unused);
		return asks;
	}
	ready_ = ready;
	unused_ = unused;
	running_ = 0;
	turn = detail::turn_of(0, unused, leaves ? detail::turn_leaves : 0);
	return asks;
}

/* Data of an answer, from host memory. Where a copy engine has delivered it, there is none. */
inline __device__ void loop::deliver_(void *to, uint32_t slot, uint32_t size)
{
	const weir_loop_args &args = detail::here().args;
	const bool in_part = size > WEIR_LOOP_INLINE;
	const uint8_t *from =
		in_part ? reinterpret_cast<const uint8_t *>(detail::peek(&args.parts[slot]))
			: args.data + uint64_t{slot} * WEIR_LOOP_INLINE;

	if (from)
		detail::copy_in(to, from, size);
	detail::barrier(); /* all have read where the data is */
	if (in_part && from && detail::first_thread())
		detail::poke(&args.parts[slot], uint64_t{0});
}

inline __device__ void loop::dispatch_(const detail::turn &turn)
{
	uint32_t i = turn.what() & detail::turn_slot;
	int64_t result = 0;

	unused_ = turn.unused();
	if (turn.what() & detail::turn_answers) {
		last_ = i;
		result = detail::peek(&block_().results[i]);
		void *deliver = reinterpret_cast<void *>(callback_(i).deliver);
		if (deliver && result > 0 && result <= WEIR_LOOP_PART)
			deliver_(deliver, slot_(i), static_cast<uint32_t>(result));
	}
	reinterpret_cast<detail::invoke_function>(turn.invoke)(*this, i, result);
}

inline __device__ void loop::load_()
{
	weir_loop_block &block = block_();

	unused_ = mask_() & ~block.used;
	ready_ = block.ready;
	requests_ = block.requests;
	last_ = block.last;
	/* What is ready goes first: a gate has just let the kernel pass. */
	next_look_ = clock64() + detail::here().args.check_cycles;
#if WEIR_LOOP_SHARED
	detail::copy(detail::here().callbacks, block.callbacks, sizeof(detail::here().callbacks));
	detail::barrier();
#endif
}

/* Callbacks can run from here on. All blocks come here at about the same time. */
inline __device__ void loop::begin_()
{
	if (!detail::first_thread())
		return;
	const weir_loop_args &args = detail::here().args;
	uint64_t now = detail::now();
	atomicMax(reinterpret_cast<unsigned long long *>(&args.device->last_answer),
		  static_cast<unsigned long long>(now));
	if (detail::block() == 0) {
		detail::poke(&args.device->began, now);
		detail::poke(&args.report->begun, args.serial);
	}
}

/* The last block to leave puts the words in order for the next launch, and tells the host. @ended:
 * as the first thread says. */
inline __device__ void loop::leave_(bool ended)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	weir_loop_block &block = block_();
	uint64_t until = detail::now();

#if WEIR_LOOP_SHARED
	detail::barrier(); /* the first thread may have written callbacks */
	detail::copy(block.callbacks, detail::here().callbacks, sizeof(detail::here().callbacks));
#endif
	detail::barrier();
	if (!detail::first_thread())
		return;
	block.used = mask_() & ~unused_;
	block.ready = ready_;
	block.requests = requests_;
	block.last = last_;
	block.started = 1;
	if (ready_ | detail::peek(&block.done))
		atomicOr(&device.close, WEIR_LOOP_READY);
	if (ended && !block.ended) {
		block.ended = 1;
		atomicAdd(&device.ended, 1u);
	}
	detail::fence_gpu();
	if (atomicAdd(&device.left, 1u) + 1 != detail::blocks())
		return;
	detail::fence_gpu();
	uint64_t began = detail::peek(&device.began);
	weir_loop_report report = {detail::peek(&device.close),
				   detail::peek(&device.ended),
				   detail::peek(&device.code),
				   detail::peek(&device.answers),
				   args.serial,
				   detail::peek(&device.polls),
				   until > began ? until - began : 0};
	/* Where all have ended, it has not left for others. */
	detail::leaving_ends(report.reason & WEIR_LOOP_EVICTED && report.ended != detail::blocks());
	detail::poke(&args.report->reason, report.reason);
	detail::poke(&args.report->ended, report.ended);
	detail::poke(&args.report->code, report.code);
	detail::poke(&args.report->answers, report.answers);
	detail::poke(&args.report->polls, report.polls);
	detail::poke(&args.report->ran, report.ran);
	device.close = device.left = device.idle = 0;
	device.next_poll = device.next_words = device.last_answer = 0;
	detail::fence_system();
	detail::poke(&args.report->serial, report.serial);
}

template <class F> inline __device__ void loop::run(F start)
{
	weir_loop_block &block = block_();
	bool ended = block.ended != 0, comes_back = block.started != 0;

	if (comes_back && !ended)
		load_();
	begin_();
	if (!ended) {
		if (!comes_back)
			start(*this);
		const bool first = first_;
		for (uint32_t i = 0;; i ^= 1) {
			bool asks = first && choose_(detail::here().turns[i]);
			detail::barrier();
			const detail::turn turn = detail::here().turns[i];
			if (asks)
				flush_();
			if (turn.invoke)
				dispatch_(turn);
			else if (turn.what() & detail::turn_leaves)
				break;
		}
		ended = unused_ == mask_();
	}
	leave_(ended);
}

} // namespace weir
