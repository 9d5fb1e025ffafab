/* Registering callbacks: tasks, which are ready at once, and requests, which are when the host has
 * answered.
 *
 * A task costs no access to device memory while its callback has one of the slots in shared
 * memory. */
#pragma once

#include <cerrno>
#include <cstddef>
#include <new>
#include <type_traits>

#include "weir/loop/state.cuh"

namespace weir
{

namespace detail
{

/* A state of so many bytes is copied to registers: accesses that are known to go to shared memory
 * take fewer instructions. */
constexpr size_t state_copied = 32;

/* @run(l, callback) with the callback of turn @t, which is an F. */
template <class F, class Run> inline __device__ uint32_t with_state(const turn &t, Run run)
{
	loop l(t);
#if WEIR_LOOP_SHARED
	if constexpr (sizeof(F) <= state_copied) {
		const F state = [&] {
			if (t.where())
				return *reinterpret_cast<const F *>(
					shared_at<weir_loop_callback>(t.where()).capture);
			const F apart = *reinterpret_cast<const F *>(
				l.block_().callbacks[t.slot()].capture);
			asm volatile("" ::: "memory"); /* not one load for both kinds */
			return apart;
		}();
		run(l, state);
		return l.unused_;
	}
#endif
	run(l, *reinterpret_cast<const F *>(l.callback_(t.slot()).capture));
	return l.unused_;
}

template <class F> inline __device__ uint32_t invoke_task(turn t, int64_t)
{
	return with_state<F>(t, [](loop &l, const F &task) { task(l); });
}
template <class F> inline __device__ uint32_t invoke_answer(turn t, int64_t result)
{
	return with_state<F>(t, [=](loop &l, const F &callback) { callback(l, result); });
}

template <class F>
inline __device__ void fill(weir_loop_callback &to, invoke_function invoke, void *deliver,
			    bool is_task, const F &callback)
{
	to.invoke = reinterpret_cast<uint64_t>(invoke);
	if (!is_task) /* nobody reads a task's */
		to.deliver = reinterpret_cast<uint64_t>(deliver);
	new (to.capture) F(callback);
}

} // namespace detail

/* The slot, or -ENOBUFS. What goes to shared memory is written apart, by accesses of that kind. */
template <class F>
inline __device__ int loop::claim_(F callback, detail::invoke_function invoke, void *deliver,
				   bool is_task)
{
	static_assert(std::is_trivially_copyable<F>::value, "a callback captures plain values");
	static_assert(sizeof(F) <= WEIR_LOOP_CAPTURE, "a callback captures too much");
	static_assert(alignof(F) <= 16, "a callback's state is aligned to 16 bytes at most");
	uint32_t unused = unused_;

	if (!unused)
		return -ENOBUFS;
	int i = __ffs(static_cast<int>(unused)) - 1;
	unused_ = unused & (unused - 1);
	if (!first_)
		return i;
#if WEIR_LOOP_SHARED
	if (i < WEIR_LOOP_SHARED) {
		detail::fill(detail::here().callbacks[i], invoke, deliver, is_task, callback);
		return i;
	}
#endif
	detail::fill(block_().callbacks[i], invoke, deliver, is_task, callback);
	return i;
}

template <class F> inline __device__ int loop::post_task(F task)
{
	int i = claim_(task, detail::invoke_task<F>, nullptr, true);

	return i < 0 ? i : 0;
}

template <class F> inline __device__ bool loop::post_task_if_necessary(F task)
{
	return must_return_([] {}) && post_task(task) == 0;
}

template <class F> inline __device__ bool loop::yield_if_needed(F save)
{
	if (!must_return_([] {}))
		return false;
	save(*this);
	return true;
}

inline __device__ void loop::exit(int code)
{
	if (detail::first_thread()) {
		weir_loop_device &device = device_();
		atomicExch(&device.code, code);
		detail::fence_gpu();
		atomicOr(&device.close, WEIR_LOOP_EXITED);
		detail::here().noted.next_look = 0;
	}
	next_look_ = 0;
}

inline __device__ uint64_t loop::value() const
{
	return detail::peek(&detail::here().args.values[slot_(last_)]);
}

inline __device__ void loop::queue_(uint32_t i, const weir_loop_request &request)
{
	uint32_t slot = slot_(i);

	if (!first_)
		return;
	weir_loop_request *to = &detail::here().args.requests[slot];
	const uint64_t *from = reinterpret_cast<const uint64_t *>(&request);
	for (uint32_t k = 0; k < 5; k++)
		detail::poke(reinterpret_cast<uint64_t *>(to) + k, from[k]);
	detail::notes &noted = detail::here().noted;
	if (noted.asked)
		detail::poke(&detail::here().args.requests[noted.to].next,
			     static_cast<uint16_t>(slot));
	else
		noted.from = static_cast<uint16_t>(slot);
	noted.to = static_cast<uint16_t>(slot);
	noted.asked |= 1u << i;
}

template <class F>
inline __device__ int loop::request(const weir_loop_request &request, void *deliver, F callback)
{
	int i = claim_(callback, detail::invoke_answer<F>, deliver, false);

	if (i < 0)
		return i;
	queue_(static_cast<uint32_t>(i), request);
	return 0;
}

template <class F>
inline __device__ int loop::request_with(weir_loop_request request, const void *data, uint64_t size,
					 void *deliver, F callback)
{
	int i = claim_(callback, detail::invoke_answer<F>, deliver, false);

	if (i < 0)
		return i;
	detail::barrier(); /* other threads may have written what this one copies */
	detail::copy(detail::here().args.data +
			     uint64_t{slot_(static_cast<uint32_t>(i))} * WEIR_LOOP_INLINE,
		     data, size);
	queue_(static_cast<uint32_t>(i), request);
	return 0;
}

/* First thread, when all have returned from the callback: one doorbell for all its requests. */
inline __device__ void loop::flush_()
{
	const weir_loop_args &args = detail::here().args;
	/* The number first: it comes while the fence waits for the requests. */
	uint32_t number = atomicAdd(&device_().doorbells, 1u);

	detail::fence_system();
	detail::poke(&args.doorbells[number & (args.ring - 1)],
		     WEIR_LOOP_DOORBELL(detail::here().noted.from, number + 1));
	detail::here().noted.asked = 0;
}

} // namespace weir
