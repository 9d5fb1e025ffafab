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

namespace detail
{

/* Of the callbacks that are @ready, the next one behind the @last: so none waits for ever. */
inline __device__ uint32_t next_of(uint32_t ready, uint32_t last)
{
	uint32_t behind = ready & ~(~0u >> (31 - last));

	return static_cast<uint32_t>(__ffs(static_cast<int>(behind ? behind : ready)) - 1);
}

} // namespace detail

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

/* First thread: what all do next. The callback that has returned left @unused slots. */
inline __device__ detail::turn loop::choose_(detail::knowledge &known, uint32_t unused)
{
	const detail::pair noted = detail::shared_pair(&detail::here().noted);
	const int64_t next_look = static_cast<int64_t>(noted.low);
	const uint32_t asked = static_cast<uint32_t>(noted.high);
	uint32_t ready = known.ready | (known.unused & ~unused & ~asked);
	uint32_t requests = known.requests | asked, what = asked ? detail::turn_asks : 0;
	bool leaves = false;

	unused |= known.running;
	known = {unused, ready, requests, 0, known.last};
	if (!ready || clock64() >= next_look)
		leaves = search_(known.ready, unused, asked != 0);
	if (leaves || !known.ready)
		return detail::turn_of(
			0, unused, what | detail::turn_none | (leaves ? detail::turn_leaves : 0));

	uint32_t i = detail::next_of(known.ready, known.last), bit = 1u << i;
	known = {unused, known.ready & ~bit, requests & ~bit, bit, i};
	what |= (requests & bit ? detail::turn_answers : 0) | i;
#if WEIR_LOOP_SHARED
	if (i < WEIR_LOOP_SHARED) { /* by an access of that kind */
		const weir_loop_callback &callback = detail::here().callbacks[i];
		what |= detail::shared_address(&callback) << detail::turn_where;
		return detail::turn_of(callback.invoke, unused, what);
	}
#endif
	return detail::turn_of(block_().callbacks[i].invoke, unused, what);
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

/* The result for the callback, with data where it wants it. */
inline __device__ int64_t loop::answer_(const detail::turn &turn)
{
	uint32_t i = turn.slot();
	int64_t result = detail::peek(&block_().results[i]);
	void *deliver = reinterpret_cast<void *>(callback_(i).deliver);

	if (deliver && result > 0 && result <= WEIR_LOOP_PART)
		deliver_(deliver, slot_(i), static_cast<uint32_t>(result));
	return result;
}

inline __device__ void loop::load_(detail::knowledge &known)
{
	weir_loop_block &block = block_();

	unused_ = mask_() & ~block.used;
	known = {unused_, block.ready, block.requests, 0, block.last};
	/* What is ready goes first: a gate has just let the kernel pass. */
	if (first_)
		detail::here().noted.next_look = clock64() + detail::here().args.check_cycles;
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
inline __device__ void loop::leave_(bool ended, const detail::knowledge &known)
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
	block.used = mask_() & ~known.unused;
	block.ready = known.ready;
	block.requests = known.requests;
	block.last = known.last;
	block.started = 1;
	if (known.ready | detail::peek(&block.done))
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

/* Callbacks until none is left, or the kernel must leave. */
inline __device__ void loop::run_callbacks_(detail::knowledge &known)
{
	uint32_t unused = unused_, at = detail::shared_address(detail::here().turns);

	for (;; at ^= sizeof(detail::turn)) {
		if (first_)
			detail::shared_at<detail::turn>(at) = choose_(known, unused);
		detail::barrier();
		detail::turn turn = detail::shared_at<detail::turn>(at);
		int64_t result = 0;

		if (__builtin_expect(turn.what() & detail::turn_rare, 0)) {
			if (first_ && (turn.what() & detail::turn_asks))
				flush_();
			if (turn.what() & detail::turn_leaves)
				return;
			unused = turn.unused();
			if (turn.what() & detail::turn_none)
				continue;
			if (turn.what() & detail::turn_answers)
				result = answer_(turn);
		}
		turn.words |= uint64_t{first_} << 32;
		unused = reinterpret_cast<detail::invoke_function>(turn.invoke)(turn, result);
	}
}

template <class F> inline __device__ void loop::run(F start)
{
	weir_loop_block &block = block_();
	bool ended = block.ended != 0, comes_back = block.started != 0;
	detail::knowledge known = {mask_(), 0, 0, 0, 0};

	if (comes_back && !ended)
		load_(known);
	begin_();
	if (!ended) {
		if (!comes_back)
			start(*this);
		run_callbacks_(known);
		ended = known.unused == mask_();
	}
	leave_(ended, known);
}

} // namespace weir
