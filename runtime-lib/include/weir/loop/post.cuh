/* Registering callbacks: tasks, which are ready at once, and requests, which are when the host has
 * answered.
 *
 * A task costs no access to device memory while its callback has one of the slots in shared
 * memory. */
#pragma once

#include <cerrno>
#include <cstddef>
#include <type_traits>

#include "weir/loop/state.cuh"

namespace weir
{

namespace detail
{

/* Each thread has its loop in a variable of the kernel. The compiler cannot know that in a
 * callback, and accesses to memory of an unknown kind take longer. */
inline __device__ void is_local(const loop *l)
{
	__builtin_assume(__isLocal(l));
}

/* A state of so many bytes is copied to registers: accesses that are known to go to shared memory
 * take fewer instructions. */
constexpr size_t state_copied = 32;

/* @run(callback) with the callback in slot @i, which is an F. */
template <class F, class Run> inline __device__ void with_state(loop &l, uint32_t i, Run run)
{
	is_local(&l);
#if WEIR_LOOP_SHARED
	if constexpr (sizeof(F) <= state_copied) {
		const F state = [&] {
			if (i < WEIR_LOOP_SHARED)
				return *reinterpret_cast<const F *>(here().callbacks[i].capture);
			const F apart =
				*reinterpret_cast<const F *>(l.block_().callbacks[i].capture);
			asm volatile("" ::: "memory"); /* not one load for both kinds */
			return apart;
		}();
		run(state);
		return;
	}
#endif
	run(*reinterpret_cast<const F *>(l.callback_(i).capture));
}

template <class F> inline __device__ void invoke_task(loop &l, uint32_t i, int64_t)
{
	with_state<F>(l, i, [&](const F &task) { task(l); });
}
template <class F> inline __device__ void invoke_answer(loop &l, uint32_t i, int64_t result)
{
	with_state<F>(l, i, [&](const F &callback) { callback(l, result); });
}

template <class F>
inline __device__ void fill(weir_loop_callback &to, invoke_function invoke, void *deliver,
			    const F &callback)
{
	to.invoke = reinterpret_cast<uint64_t>(invoke);
	to.deliver = reinterpret_cast<uint64_t>(deliver);
	__builtin_memcpy(to.capture, &callback, sizeof(callback));
}

} // namespace detail

/* The slot, or -ENOBUFS. What goes to shared memory is written apart, by accesses of that kind. */
template <class F>
inline __device__ int loop::claim_(F callback, detail::invoke_function invoke, void *deliver,
				   bool ready)
{
	static_assert(std::is_trivially_copyable<F>::value, "a callback captures plain values");
	static_assert(sizeof(F) <= WEIR_LOOP_CAPTURE, "a callback captures too much");
	static_assert(alignof(F) <= 16, "a callback's state is aligned to 16 bytes at most");
	uint32_t unused = unused_, first = first_;

	asm volatile("" ::"r"(first)); /* both are read at the same time */
	if (!unused)
		return -ENOBUFS;
	int i = __ffs(static_cast<int>(unused)) - 1;
	unused_ = unused & (unused - 1);
	if (!first)
		return i;
	ready_ |= uint32_t{ready} << i;
#if WEIR_LOOP_SHARED
	if (i < WEIR_LOOP_SHARED) {
		detail::fill(detail::here().callbacks[i], invoke, deliver, callback);
		return i;
	}
#endif
	detail::fill(block_().callbacks[i], invoke, deliver, callback);
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
	requests_ |= 1u << i;
	weir_loop_request *to = &detail::here().args.requests[slot];
	const uint64_t *from = reinterpret_cast<const uint64_t *>(&request);
	for (uint32_t k = 0; k < 5; k++)
		detail::poke(reinterpret_cast<uint64_t *>(to) + k, from[k]);
	if (queued_ == WEIR_LOOP_NO_SLOT)
		queued_ = slot;
	else
		detail::poke(&detail::here().args.requests[queue_end_].next,
			     static_cast<uint16_t>(slot));
	queue_end_ = slot;
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
		     WEIR_LOOP_DOORBELL(queued_, number + 1));
	queued_ = queue_end_ = WEIR_LOOP_NO_SLOT;
}

} // namespace weir
