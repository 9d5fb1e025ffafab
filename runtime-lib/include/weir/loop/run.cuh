/* The loop itself: which callback is next, and what a block does to leave the GPU and to come back.
 *
 * One barrier stands between two callbacks. All threads of the block have then finished the first,
 * and its slot may be written again.
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

/* False: the block leaves. */
inline __device__ bool loop::next_()
{
	detail::shared &here = detail::here();
	bool news = false;

	if (!ready_ && unused_ == mask_())
		return false;
	if (detail::first_thread()) {
		news = (!ready_ || clock64() >= next_look_) && await_(ready_ != 0);
		if (news) {
			here.leaves = detail::peek(&device_().close);
			here.news = atomicExch(&block_().done, 0u);
			detail::fence_gpu(); /* data of the answers, also in the L1 cache */
		}
	}
	if (!__syncthreads_or(news))
		return true;
	bool leaves = here.leaves != 0;
	ready_ |= here.news;
	detail::barrier(); /* the first thread may write them again */
	return !leaves;
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

inline __device__ void loop::dispatch_()
{
	/* The next one behind the last, so that none waits for ever. */
	uint32_t behind = ready_ & ~(~0u >> (31 - last_));
	uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(behind ? behind : ready_)) - 1);
	weir_loop_callback &callback = callback_(i);
	int64_t result = 0;

	ready_ &= ~(1u << i);
	last_ = i;
	if (requests_ & 1u << i) {
		requests_ &= ~(1u << i);
		result = detail::peek(&block_().results[i]);
		void *deliver = reinterpret_cast<void *>(callback.deliver);
		if (deliver && result > 0 && result <= WEIR_LOOP_PART)
			deliver_(deliver, slot_(i), static_cast<uint32_t>(result));
	}
	reinterpret_cast<detail::invoke_function>(callback.invoke)(*this, callback.capture, result);
	unused_ |= 1u << i;
	flush_();
}

inline __device__ void loop::load_()
{
	weir_loop_block &block = block_();

	unused_ = mask_() & ~block.used;
	ready_ = block.ready;
	requests_ = block.requests;
	last_ = block.last;
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

/* The last block to leave puts the words in order for the next launch, and tells the host. */
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
		if (!comes_back) {
			start(*this);
			flush_();
		}
		while (next_())
			dispatch_();
		ended = unused_ == mask_();
	}
	leave_(ended);
}

} // namespace weir
