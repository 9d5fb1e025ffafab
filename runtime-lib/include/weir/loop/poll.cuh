/* How a block learns that an answer has come, or that it must leave.
 *
 *   first thread of each block   a look: two reads of device memory, together
 *   one of them, by election     a poll: reads of host memory, and tells the others by device
 * memory
 *
 * A busy block looks every check_cycles. A block that waits looks all the time. Who looks when the
 * next poll is due may win the election: it replaces next_poll by being_polled, and the time of the
 * next poll replaces that. So nobody else tries meanwhile. Blocks that wait poll poll_ns after the
 * last poll. Busy blocks poll words_ns after it: the one that polls stands still for some
 * microseconds. If any block waits, busy ones never poll. */
#pragma once

#include "weir/loop/leaving.cuh"
#include "weir/loop/state.cuh"

namespace weir
{

namespace detail
{

constexpr uint64_t being_polled = uint64_t{1} << 63; /* in next_poll; later than any time */
constexpr uint32_t answers_most = 16;                /* that one fence tells of */
constexpr uint32_t nap_ns = 500;                     /* between two looks of a block that waits */
constexpr uint32_t lookers = 128; /* blocks that wait look at the common words as if so many */

/* The entries of the ring where number @taken is one of two. */
inline __device__ pair answers_at(const weir_loop_args &args, uint32_t taken)
{
	return peek(reinterpret_cast<const pair *>(args.answers) +
		    ((taken & (args.ring - 1)) >> 1));
}

} // namespace detail

/* First thread, which polls. Takes what has come from number @taken on; @ahead is answers_at() it.
 * Returns the number of the first that has not come. */
inline __device__ uint32_t loop::take_answers_(uint32_t taken, detail::pair ahead)
{
	const weir_loop_args &args = detail::here().args;
	uint32_t slots[detail::answers_most], n;

	do {
		for (n = 0; n < detail::answers_most;) {
			uint64_t answer = taken & 1 ? ahead.high : ahead.low;
			if (static_cast<uint16_t>(answer >> 48) !=
			    static_cast<uint16_t>(taken / args.ring + 1))
				break;
			uint32_t slot = static_cast<uint16_t>(answer >> 32);
			if (slot == WEIR_LOOP_NO_SLOT) {
				atomicOr(&args.device->close, static_cast<uint32_t>(answer));
			} else {
				slots[n++] = slot;
				detail::poke(&args.blocks[slot / args.callbacks]
						      .results[slot % args.callbacks],
					     static_cast<int32_t>(answer));
			}
			if (!(++taken & 1))
				ahead = detail::answers_at(args, taken);
		}
		if (n)
			detail::fence_system(); /* results, and what the host wrote before its
						   answers */
#pragma unroll 1
		for (uint32_t i = 0; i < n; i++)
			atomicOr(&args.blocks[slots[i] / args.callbacks].done,
				 1u << slots[i] % args.callbacks);
	} while (n == detail::answers_most);
	return taken;
}

/* First thread, which polls: all blocks have waited for long enough. */
inline __device__ bool loop::all_wait_(uint64_t now)
{
	const weir_loop_args &args = detail::here().args;
	uint64_t last = detail::peek(&args.device->last_answer);
	uint32_t idle = detail::peek(&args.device->idle), left = detail::peek(&args.device->left);

	return now > last + args.linger_ns && idle + left == detail::blocks();
}

/* First thread, which was elected. */
inline __device__ void loop::poll_(uint64_t now, bool busy)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	uint32_t taken = detail::peek(&device.answers);
	bool closed = detail::peek(&device.close) != 0;
	bool looks_at_words = busy || now >= detail::peek(&device.next_words);

	/* Behind a reason to leave nobody takes answers: blocks that have left would not see them.
	 */
	if (!closed) {
		/* All reads of host memory together. */
		uint64_t demand = looks_at_words && args.demand ? detail::peek(args.demand) : 0;
		uint32_t hold = looks_at_words && args.hold ? detail::peek(args.hold) : 0;
		detail::pair ahead = detail::answers_at(args, taken);

		if (looks_at_words)
			detail::poke(&device.next_words, now + args.words_ns);
		if ((demand & args.demand_mask) || hold || detail::leaving_asks(now)) {
			atomicOr(&device.close, WEIR_LOOP_EVICTED);
		} else {
			uint32_t next = take_answers_(taken, ahead);
			if (next != taken) {
				detail::poke(&device.answers, next);
				detail::poke(&device.last_answer, now);
			} else if (!busy && all_wait_(now)) {
				atomicOr(&device.close, WEIR_LOOP_BLOCKED);
			}
		}
		atomicAdd(&device.polls, 1u);
	}
	detail::give(&device.next_poll, detail::now() + args.poll_ns);
}

/* First thread: something has come for this block, or it must leave. */
inline __device__ bool loop::look_(bool busy)
{
	const weir_loop_args &args = detail::here().args;
	weir_loop_device &device = *args.device;
	weir_loop_block &block = block_();
	detail::pair words =
		detail::peek(reinterpret_cast<const detail::pair *>(&device.next_poll));
	uint32_t done = detail::peek(&block.done);
	uint32_t close = static_cast<uint32_t>(words.high);
	uint64_t now = detail::now();
	uint32_t later = busy && args.words_ns > args.poll_ns ? args.words_ns - args.poll_ns : 0;

	if (!close && now >= words.low + later &&
	    detail::take(&device.next_poll, words.low, detail::being_polled)) {
		poll_(now, busy);
		close = detail::peek(&device.close);
		done = detail::peek(&block.done);
	}
	bool news = (close | done) != 0;
	/* The next one to look acts on news. */
	next_look_ = news ? 0 : clock64() + args.check_cycles;
	detail::here().noted.next_look = next_look_;
	return news;
}

inline __device__ bool loop::warp_must_leave()
{
	bool leaves = false;

	if (detail::thread() % 32 == 0 && clock64() >= next_look_) {
		if (first_)
			look_(true);
		else
			next_look_ = clock64() + detail::here().args.check_cycles;
		leaves = detail::peek(&device_().close) != 0;
	}
	return __any_sync(~0u, leaves);
}

/* A scheduling point, at which the first thread also runs @work(). A barrier. */
template <class F> inline __device__ bool loop::must_return_(F work)
{
	bool returns = false;

	if (detail::first_thread()) {
		work();
		returns = clock64() >= next_look_ && look_(true);
	}
	return __syncthreads_or(returns);
}

/* First thread: one look of a busy block; with nothing to do, until something comes. True: it has.
 * Each block that waits looks at its own word. At those that all blocks share it looks less often
 * the more blocks there are, for they are in one place. */
inline __device__ bool loop::await_(bool busy)
{
	const uint32_t apart = busy ? 1 : 1 + detail::blocks() / detail::lookers;
	const uint32_t *done = &block_().done;
	bool news;

	if (!busy)
		atomicAdd(&device_().idle, 1u);
	for (uint32_t n = detail::block() % apart;; n = n + 1 == apart ? 0 : n + 1) {
		news = n ? detail::peek(done) != 0 : look_(busy);
		if (busy || news)
			break;
		__nanosleep(detail::nap_ns);
	}
	if (!busy)
		atomicSub(&device_().idle, 1u);
	return news;
}

} // namespace weir
