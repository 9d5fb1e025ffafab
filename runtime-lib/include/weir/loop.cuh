/* Kernels that do their own input and output: an event loop on the GPU (runtime-lib/loop/README.md).
 *
 *     #include <weir/loop.cuh>
 *
 *     extern "C" __global__ void count(weir::loop_args args, unsigned long long *out)
 *     {
 *         weir::loop loop(args);
 *         loop.run([=](weir::loop &l) {
 *             weir::file::open(l, "/etc/hostname", 0, 0, [=](weir::loop &l, int64_t file) { ... });
 *         });
 *     }
 *
 * The host starts it with weir_loop_run() (weir/loop.h, libweir-loop.a). nvcc -std=c++17, sm_75 and
 * newer; nothing to link on the device side.
 *
 * The contract of every function here:
 *  - All threads of the block call it, with the same arguments, at the same place, as
 *    __syncthreads(). The program may call nothing of it in divergent code.
 *  - A callback is a lambda that captures by value. Its state is trivially copyable and at most
 *    WEIR_LOOP_CAPTURE bytes, and the same in all threads: the first thread's is kept. What threads
 *    have of their own, and shared memory, must be saved by the program in device memory.
 *  - A callback runs once, with all threads of its block, after the callback that registered it has
 *    returned. Callbacks of a block run one after the other. Those that are due at the same time
 *    run in the order of their slots, not in that of their answers.
 *  - 0: registered. -ENOBUFS: the block has as many callbacks as it may have (weir_loop_options);
 *    nothing happens. Other errors come to the callback as a negative errno.
 *  - Buffers belong to the request until its callback runs. They lie in device memory.
 *  - Between two callbacks the kernel may leave the GPU and come back. Device memory stays.
 *
 * Costs. Times are upper bounds from one run of e2e/loop/loop-runner on an H100: all of the run over the
 * number of calls. The experiment loop-points has not run on a GPU yet.
 *
 *   function                 what it does                                         time
 *   post_task                a callback to shared memory, a barrier               not measured alone
 *   post_task_if_necessary   a clock and a barrier; every check_cycles two reads  not measured
 *   yield_if_needed          the same                                             <= 0.3 us (64 threads)
 *   file::read, write        a request and an answer over PCIe, the host's work   <= 24 us (4 KiB, page cache)
 *   net, timer, host         the same                                             not measured
 *   exit                     an atomic operation                                  not measured
 */
#pragma once

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "weir/loop-abi.h"

/* Callbacks in shared memory, of each block; the others are in device memory. 0 leaves the shared
 * memory to the program. */
#ifndef WEIR_LOOP_SHARED
#define WEIR_LOOP_SHARED 2
#endif

namespace weir {

using loop_args = weir_loop_args;

class loop;

namespace detail {

/* Of a block, in shared memory. */
struct shared {
	weir_loop_args args;
	uint32_t news[2];   /* answers that came; of this turn and the last */
	uint32_t leaves[2]; /* all must leave */
#if WEIR_LOOP_SHARED
	weir_loop_callback callbacks[WEIR_LOOP_SHARED];
#endif
};

inline __device__ shared &here()
{
	__shared__ shared s;
	return s;
}

template <class T> inline __device__ T peek(const T *p)
{
	return *static_cast<const volatile T *>(p);
}
template <class T> inline __device__ void poke(T *p, T value)
{
	*static_cast<volatile T *>(p) = value;
}
inline __device__ uint64_t now()
{
	uint64_t ns;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}
inline __device__ bool first_thread()
{
	return threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
}
inline __device__ uint32_t thread()
{
	return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline __device__ uint32_t threads()
{
	return blockDim.x * blockDim.y * blockDim.z;
}
inline __device__ uint32_t block()
{
	return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
inline __device__ uint32_t blocks()
{
	return gridDim.x * gridDim.y * gridDim.z;
}
inline __device__ void barrier()
{
	__syncthreads();
}

/* By all threads. 16 bytes at a time where both are aligned. */
inline __device__ void copy(void *to, const void *from, uint64_t size)
{
	uint64_t done = 0;

	if (((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) & 15) == 0) {
		const uint4 *wide = static_cast<const uint4 *>(from);
		for (uint64_t i = thread(); i < size / 16; i += threads())
			static_cast<uint4 *>(to)[i] = wide[i];
		done = size & ~uint64_t{15};
	}
	for (uint64_t i = done + thread(); i < size; i += threads())
		static_cast<uint8_t *>(to)[i] = static_cast<const uint8_t *>(from)[i];
}

/* Inline data of a slot, as the host wrote it: never from a cache. */
inline __device__ void copy_in(void *to, const uint8_t *from, uint32_t size)
{
	uint8_t *bytes = static_cast<uint8_t *>(to);
	uint32_t done = 0;

	if ((reinterpret_cast<uintptr_t>(to) & 7) == 0) {
		for (uint32_t i = thread(); i < size / 8; i += threads())
			reinterpret_cast<uint64_t *>(bytes)[i] =
				peek(reinterpret_cast<const uint64_t *>(from) + i);
		done = size & ~7u;
	}
	for (uint32_t i = done + thread(); i < size; i += threads())
		bytes[i] = peek(from + i);
}

template <class F> inline __device__ void invoke_task(loop &l, const void *capture, int64_t)
{
	(*static_cast<const F *>(capture))(l);
}
template <class F> inline __device__ void invoke_answer(loop &l, const void *capture, int64_t result)
{
	(*static_cast<const F *>(capture))(l, result);
}

using invoke_function = void (*)(loop &, const void *, int64_t);

} // namespace detail

/* Of one block. Every thread has one, and all of them are the same. */
class loop {
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
	 * @save(l) saves it and posts what goes on later. True: it did, and the caller must return. */
	template <class F> __device__ bool yield_if_needed(F save);

	/* The whole loop ends: no block runs another callback, and weir_loop_run() says @code. */
	__device__ void exit(int code);

	/* True: a callback can be registered now. */
	__device__ bool has_room() const
	{
		return used_ != mask_();
	}

	/* For the functions below: registers @callback for the answer to a request. @deliver: where
	 * results of 1..WEIR_LOOP_INLINE bytes go; nullptr: the result counts none. The request is sent when the
	 * callback that runs now has returned. */
	template <class F>
	__device__ int request(const weir_loop_request &request, void *deliver, F callback);
	/* The same with @size bytes of inline data. */
	template <class F>
	__device__ int request_with(weir_loop_request request, const void *data, uint64_t size,
				    void *deliver, F callback);
	/* What came with the answer that the running callback is for: RECEIVE_ANY, SIZE. */
	__device__ uint64_t value() const;

private:
	__device__ uint32_t mask_() const
	{
		return ~0u >> (32 - detail::here().args.callbacks);
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
	template <class F>
	__device__ int claim_(F callback, detail::invoke_function invoke, void *deliver);
	__device__ void queue_(uint32_t i, const weir_loop_request &request);
	__device__ void flush_();
	__device__ bool must_return_();
	__device__ bool look_();
	__device__ void poll_();
	__device__ bool take_answers_(uint64_t now);
	__device__ void look_at_words_(uint64_t now);
	__device__ void wait_();
	__device__ bool next_();
	__device__ void dispatch_();
	__device__ void load_();
	__device__ void leave_(bool ended);

	/* The same in all threads. */
	uint32_t used_ = 0, ready_ = 0, requests_ = 0;
	uint32_t queued_ = WEIR_LOOP_NO_SLOT, queue_end_ = WEIR_LOOP_NO_SLOT;
	uint32_t last_ = 0, turn_ = 0, running_ = 0;
	/* Of the first thread. */
	int64_t next_look_ = 0;
};

inline __device__ loop::loop(const weir_loop_args &args)
{
	if (detail::first_thread())
		detail::here().args = args;
	detail::barrier();
}

template <class F>
inline __device__ int loop::claim_(F callback, detail::invoke_function invoke, void *deliver)
{
	static_assert(std::is_trivially_copyable<F>::value, "a callback captures plain values");
	static_assert(sizeof(F) <= WEIR_LOOP_CAPTURE, "a callback captures too much");
	static_assert(alignof(F) <= 16, "a callback's state is aligned to 16 bytes at most");
	uint32_t unused = mask_() & ~used_;

	if (!unused)
		return -ENOBUFS;
	int i = __ffs(static_cast<int>(unused)) - 1;
	used_ |= 1u << i;
	if (detail::first_thread()) {
		weir_loop_callback &to = callback_(i);
		to.invoke = reinterpret_cast<uint64_t>(invoke);
		to.deliver = reinterpret_cast<uint64_t>(deliver);
		__builtin_memcpy(to.capture, &callback, sizeof(callback));
	}
	return i;
}

template <class F> inline __device__ int loop::post_task(F task)
{
	int i = claim_(task, detail::invoke_task<F>, nullptr);

	if (i < 0)
		return i;
	ready_ |= 1u << i;
	return 0;
}

template <class F> inline __device__ bool loop::post_task_if_necessary(F task)
{
	return must_return_() && post_task(task) == 0;
}

template <class F> inline __device__ bool loop::yield_if_needed(F save)
{
	if (!must_return_())
		return false;
	save(*this);
	return true;
}

inline __device__ void loop::exit(int code)
{
	if (detail::first_thread()) {
		weir_loop_device &device = device_();
		atomicExch(&device.code, code);
		__threadfence();
		atomicOr(&device.close, WEIR_LOOP_EXITED);
	}
	next_look_ = 0;
}

inline __device__ uint64_t loop::value() const
{
	return detail::peek(&detail::here().args.values[slot_(running_)]);
}

inline __device__ void loop::queue_(uint32_t i, const weir_loop_request &request)
{
	uint32_t slot = slot_(i);

	requests_ |= 1u << i;
	if (detail::first_thread()) {
		weir_loop_request *to = &detail::here().args.requests[slot];
		const uint64_t *from = reinterpret_cast<const uint64_t *>(&request);
		for (uint32_t k = 0; k < 5; k++)
			detail::poke(reinterpret_cast<uint64_t *>(to) + k, from[k]);
		if (queued_ != WEIR_LOOP_NO_SLOT)
			detail::poke(&detail::here().args.requests[queue_end_].next,
				     static_cast<uint16_t>(slot));
	}
	if (queued_ == WEIR_LOOP_NO_SLOT)
		queued_ = slot;
	queue_end_ = slot;
}

template <class F>
inline __device__ int loop::request(const weir_loop_request &request, void *deliver, F callback)
{
	int i = claim_(callback, detail::invoke_answer<F>, deliver);

	if (i < 0)
		return i;
	queue_(static_cast<uint32_t>(i), request);
	return 0;
}

template <class F>
inline __device__ int loop::request_with(weir_loop_request request, const void *data, uint64_t size,
					 void *deliver, F callback)
{
	int i = claim_(callback, detail::invoke_answer<F>, deliver);

	if (i < 0)
		return i;
	detail::barrier(); /* other threads may have written what this one copies */
	detail::copy(detail::here().args.data + uint64_t{slot_(i)} * WEIR_LOOP_INLINE, data, size);
	queue_(static_cast<uint32_t>(i), request);
	return 0;
}

/* One doorbell for all requests of the callback. */
inline __device__ void loop::flush_()
{
	if (queued_ == WEIR_LOOP_NO_SLOT)
		return;
	detail::barrier(); /* inline data of all threads */
	if (detail::first_thread()) {
		const weir_loop_args &args = detail::here().args;
		__threadfence_system();
		uint32_t number = atomicAdd(&device_().doorbells, 1u);
		detail::poke(&args.doorbells[number & (args.ring - 1)],
			     WEIR_LOOP_DOORBELL(queued_, number + 1));
	}
	queued_ = queue_end_ = WEIR_LOOP_NO_SLOT;
}

/* First thread, which has won the election. True: there were some. */
inline __device__ bool loop::take_answers_(uint64_t now)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	uint32_t taken = detail::peek(&device.answers), before = taken;

	for (;;) {
		uint64_t answer = detail::peek(&args.answers[taken & (args.ring - 1)]);
		if (static_cast<uint16_t>(answer >> 48) !=
		    static_cast<uint16_t>(taken / args.ring + 1))
			break;
		uint32_t slot = static_cast<uint16_t>(answer >> 32);
		taken++;
		if (slot == WEIR_LOOP_NO_SLOT) {
			atomicOr(&device.close, static_cast<uint32_t>(answer));
			continue;
		}
		weir_loop_block &block = args.blocks[slot / args.callbacks];
		uint32_t i = slot % args.callbacks;
		detail::poke(&block.results[i], static_cast<int32_t>(answer));
		__threadfence_system();
		atomicOr(&block.done, 1u << i);
	}
	detail::poke(&device.polls, detail::peek(&device.polls) + 1);
	detail::poke(&device.answers, taken);
	if (taken != before)
		detail::poke(&device.last_answer, now);
	return taken != before;
}

inline __device__ void loop::look_at_words_(uint64_t now)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;

	if (now < detail::peek(&device.next_words))
		return;
	detail::poke(&device.next_words, now + args.words_ns);
	if ((args.demand && (detail::peek(args.demand) & args.demand_mask)) ||
	    (args.hold && detail::peek(args.hold)))
		atomicOr(&device.close, WEIR_LOOP_EVICTED);
}

/* First thread: reads host memory if it is time and nobody else does. */
inline __device__ void loop::poll_()
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	uint64_t now = detail::now();

	if (now < detail::peek(&device.next_poll) || atomicCAS(&device.polling, 0u, 1u))
		return;
	/* Behind a reason to leave nobody takes answers: blocks that have left would not see them. */
	if (now >= detail::peek(&device.next_poll) && !detail::peek(&device.close)) {
		look_at_words_(now);
		bool came = take_answers_(now);
		if (!came && now - detail::peek(&device.last_answer) > args.linger_ns &&
		    detail::peek(&device.idle) + detail::peek(&device.left) == detail::blocks())
			atomicOr(&device.close, WEIR_LOOP_BLOCKED);
		detail::poke(&device.next_poll, detail::now() + args.poll_ns);
	}
	__threadfence();
	atomicExch(&device.polling, 0u);
}

/* First thread: something has come for this block, or it must leave. */
inline __device__ bool loop::look_()
{
	poll_();
	bool news = (detail::peek(&device_().close) | detail::peek(&block_().done)) != 0;
	/* The next one to look acts on news. */
	next_look_ = news ? 0 : clock64() + detail::here().args.check_cycles;
	return news;
}

inline __device__ bool loop::must_return_()
{
	bool returns = false;

	if (detail::first_thread() && clock64() >= next_look_)
		returns = look_();
	return __syncthreads_or(returns);
}

/* First thread, with nothing to do: until that changes. */
inline __device__ void loop::wait_()
{
	atomicAdd(&device_().idle, 1u);
	while (!look_())
		__nanosleep(500);
	atomicSub(&device_().idle, 1u);
}

/* False: the block leaves. */
inline __device__ bool loop::next_()
{
	detail::shared &here = detail::here();
	uint32_t turn = turn_++ & 1;

	if (!used_)
		return false;
	if (detail::first_thread()) {
		uint32_t news = 0, leaves = 0;
		bool due = clock64() >= next_look_;
		if (!ready_)
			wait_();
		else if (due)
			look_();
		if (!ready_ || due) {
			leaves = detail::peek(&device_().close);
			news = atomicExch(&block_().done, 0u);
			__threadfence_system(); /* data of the answers, also in the L1 cache */
		}
		here.news[turn] = news;
		here.leaves[turn] = leaves;
	}
	detail::barrier();
	ready_ |= here.news[turn];
	return !here.leaves[turn];
}

inline __device__ void loop::dispatch_()
{
	/* The next one behind the last, so that none waits for ever. */
	uint32_t behind = ready_ & ~(~0u >> (31 - last_));
	uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(behind ? behind : ready_)) - 1);
	weir_loop_callback &callback = callback_(i);
	int64_t result = 0;

	ready_ &= ~(1u << i);
	last_ = running_ = i;
	if (requests_ & 1u << i) {
		requests_ &= ~(1u << i);
		result = detail::peek(&block_().results[i]);
		void *deliver = reinterpret_cast<void *>(callback.deliver);
		if (deliver && result > 0 && result <= WEIR_LOOP_INLINE) {
			detail::copy_in(deliver,
					detail::here().args.data +
						uint64_t{slot_(i)} * WEIR_LOOP_INLINE,
					static_cast<uint32_t>(result));
			detail::barrier();
		}
	}
	reinterpret_cast<detail::invoke_function>(callback.invoke)(*this, callback.capture, result);
	used_ &= ~(1u << i);
	flush_();
}

inline __device__ void loop::load_()
{
	weir_loop_block &block = block_();

	used_ = block.used;
	ready_ = block.ready;
	requests_ = block.requests;
	last_ = block.last;
#if WEIR_LOOP_SHARED
	detail::copy(detail::here().callbacks, block.callbacks,
		     sizeof(detail::here().callbacks));
	detail::barrier();
#endif
}

/* The last block to leave puts the words in order for the next launch, and tells the host. */
inline __device__ void loop::leave_(bool ended)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	weir_loop_block &block = block_();

	detail::barrier();
#if WEIR_LOOP_SHARED
	detail::copy(block.callbacks, detail::here().callbacks,
		     sizeof(detail::here().callbacks));
	detail::barrier();
#endif
	if (!detail::first_thread())
		return;
	block.used = used_;
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
	__threadfence();
	if (atomicAdd(&device.left, 1u) + 1 != detail::blocks())
		return;
	__threadfence();
	weir_loop_report *report = args.report;
	detail::poke(&report->reason, detail::peek(&device.close));
	detail::poke(&report->ended, detail::peek(&device.ended));
	detail::poke(&report->code, detail::peek(&device.code));
	detail::poke(&report->answers, detail::peek(&device.answers));
	detail::poke(&report->polls, static_cast<uint32_t>(detail::peek(&device.polls)));
	device.close = device.left = device.idle = 0;
	device.next_poll = device.next_words = device.last_answer = 0;
	__threadfence_system();
	detail::poke(&report->serial, args.serial);
}

template <class F> inline __device__ void loop::run(F start)
{
	weir_loop_block &block = block_();
	bool ended = block.ended != 0;

	if (!ended) {
		if (detail::first_thread())
			atomicMax(reinterpret_cast<unsigned long long *>(&device_().last_answer),
				  static_cast<unsigned long long>(detail::now()));
		if (block.started) {
			load_();
		} else {
			start(*this);
			flush_();
		}
		while (next_())
			dispatch_();
		ended = !used_;
	}
	leave_(ended);
}

/* Runs @body(l, n) for n = 0..@total-1, each once, shared among all blocks of the loop: the blocks of
 * a kernel that has many short ones. @ticket: a word in device memory that all blocks use, 0 at
 * first. @then(l) runs in each block when there are no more. The kernel may leave after each body. */
template <class Body, class Then>
inline __device__ void each_block(loop &l, uint32_t *ticket, uint32_t total, Body body, Then then)
{
	__shared__ uint32_t drawn;

	for (;;) {
		detail::barrier();
		if (detail::first_thread())
			drawn = atomicAdd(ticket, 1u);
		detail::barrier();
		uint32_t n = drawn;
		if (n >= total) {
			then(l);
			return;
		}
		body(l, n);
		if (l.post_task_if_necessary(
			    [=](loop &later) { each_block(later, ticket, total, body, then); }))
			return;
	}
}

namespace detail {

inline __device__ uint64_t length(const char *text)
{
	uint64_t n = 0;

	while (n < WEIR_LOOP_INLINE && text[n])
		n++;
	return n;
}

/* Requests about bytes in device memory. */
template <class F>
inline __device__ int fetch(loop &l, uint16_t op, int file, void *to, uint64_t size,
			    uint64_t offset, F callback)
{
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, file, offset,
				     reinterpret_cast<uint64_t>(to), size, 0, {}};

	return l.request(request, to, callback);
}
template <class F>
inline __device__ int put(loop &l, uint16_t op, int file, const void *from, uint64_t size,
			  uint64_t offset, F callback)
{
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, file, offset,
				     reinterpret_cast<uint64_t>(from), size, 0, {}};

	return l.request_with(request, from, size <= WEIR_LOOP_INLINE ? size : 0, nullptr,
			      callback);
}
template <class F>
inline __device__ int name(loop &l, uint16_t op, const char *text, uint64_t extra, F callback)
{
	uint64_t size = length(text);
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, -1, 0, 0, size, extra, {}};

	return l.request_with(request, text, size, nullptr, callback);
}
template <class F>
inline __device__ int plain(loop &l, uint16_t op, int file, uint64_t extra, F callback)
{
	weir_loop_request request = {op, WEIR_LOOP_NO_SLOT, file, 0, 0, 0, extra, {}};

	return l.request(request, nullptr, callback);
}

} // namespace detail

/* Handles are the loop's own: small numbers, not descriptors of the process. Each callback is
 * @callback(weir::loop &, int64_t result). */

/* Closes a file, a listener or a connection. Requests of it that wait are answered with -ECANCELED. */
template <class F> inline __device__ int close(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_CLOSE, file, 0, callback);
}

namespace file {

/* Flags and mode are open(2)'s numbers (O_RDONLY 0, O_WRONLY 1, O_RDWR 2, O_CREAT 0100, O_TRUNC
 * 01000 on x86 and arm64). Result: a handle. Paths are the host process's; at most 4095 bytes. */
template <class F>
inline __device__ int open(loop &l, const char *path, int flags, int mode, F callback)
{
	return detail::name(l, WEIR_LOOP_OPEN, path,
			    static_cast<uint32_t>(flags) | static_cast<uint64_t>(mode) << 32,
			    callback);
}
/* Result: bytes read; fewer than @size at the end of the file, 0 behind it. Up to
 * WEIR_LOOP_INLINE bytes come over PCIe by the block's own loads, more by a copy engine. At most
 * WEIR_LOOP_SIZE_MAX bytes, else -EINVAL. */
template <class F>
inline __device__ int read(loop &l, int file, void *to, uint64_t size, uint64_t offset, F callback)
{
	return detail::fetch(l, WEIR_LOOP_READ, file, to, size, offset, callback);
}
/* Result: bytes written: all, unless the disk is full or fails. */
template <class F>
inline __device__ int write(loop &l, int file, const void *from, uint64_t size, uint64_t offset,
			    F callback)
{
	return detail::put(l, WEIR_LOOP_WRITE, file, from, size, offset, callback);
}
template <class F> inline __device__ int fsync(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_FSYNC, file, 0, callback);
}
/* Result: bytes. */
template <class F> inline __device__ int size(loop &l, int file, F callback)
{
	return detail::plain(l, WEIR_LOOP_SIZE, file, 0, [=](loop &later, int64_t result) {
		callback(later, result < 0 ? result : static_cast<int64_t>(later.value()));
	});
}
using weir::close;

} // namespace file

namespace net {

/* An address is "127.0.0.1:80", "[::1]:80" or "unix:/path". No names: there is no resolver. */

/* Result: a listener. Port 0 is any free one; weir_loop_port() tells which. */
template <class F> inline __device__ int listen(loop &l, const char *address, int backlog, F callback)
{
	return detail::name(l, WEIR_LOOP_LISTEN, address, static_cast<uint32_t>(backlog), callback);
}
/* Result: a connection. */
template <class F> inline __device__ int accept(loop &l, int listener, F callback)
{
	return detail::plain(l, WEIR_LOOP_ACCEPT, listener, 0, callback);
}
template <class F> inline __device__ int connect(loop &l, const char *address, F callback)
{
	return detail::name(l, WEIR_LOOP_CONNECT, address, 0, callback);
}
/* Result: bytes, at least 1; 0: the other side has closed. */
template <class F>
inline __device__ int receive(loop &l, int connection, void *to, uint64_t size, F callback)
{
	return detail::fetch(l, WEIR_LOOP_RECEIVE, connection, to, size, 0, callback);
}
/* Waits for data of any connection of the listener, which accepts by itself: so a few callbacks
 * serve any number of connections. @callback(l, result, connection); result 0 or an error: that
 * connection is over, and closed already. While a callback has a connection, no other gets its
 * data: until the program sends an answer, closes it, or asks again with again(). Do not mix with
 * accept(). */
template <class F>
inline __device__ int receive_any(loop &l, int listener, void *to, uint64_t size, F callback)
{
	return detail::fetch(l, WEIR_LOOP_RECEIVE_ANY, listener, to, size, 0,
			     [=](loop &later, int64_t result) {
				     callback(later, result, static_cast<int>(later.value()));
			     });
}
/* A connection that receive_any() told of: its next data comes to receive_any() again. send() does
 * that, too. */
template <class F> inline __device__ int again(loop &l, int connection, F callback)
{
	return detail::plain(l, WEIR_LOOP_AGAIN, connection, 0, callback);
}
/* Result: bytes: all, unless the connection fails. */
template <class F>
inline __device__ int send(loop &l, int connection, const void *from, uint64_t size, F callback)
{
	return detail::put(l, WEIR_LOOP_SEND, connection, from, size, 0, callback);
}
using weir::close;

} // namespace net

namespace timer {

/* Result: 0, @ns nanoseconds later, or somewhat more. */
template <class F> inline __device__ int after(loop &l, uint64_t ns, F callback)
{
	return detail::plain(l, WEIR_LOOP_TIMER, -1, ns, callback);
}

} // namespace timer

namespace host {

/* Calls function @number of weir_loop_options.functions with @size bytes of @data (at most
 * WEIR_LOOP_INLINE), in a thread of the host. Result: what it returns; if that is above 0, so many
 * bytes, which it wrote, are in @data again. */
template <class F>
inline __device__ int call(loop &l, uint32_t number, void *data, uint64_t size, F callback)
{
	weir_loop_request request = {WEIR_LOOP_CALL, WEIR_LOOP_NO_SLOT, -1, 0, 0, size, number, {}};

	return l.request_with(request, data, size <= WEIR_LOOP_INLINE ? size : 0, data, callback);
}

} // namespace host

} // namespace weir
