/* Kernels of many short blocks, which a loop's blocks share among them. */
#pragma once

#include "weir/loop/run.cuh"

namespace weir
{

namespace detail
{

/* False: the body stopped in the middle. One that returns nothing is done. */
template <class Body> inline __device__ bool run_body(loop &l, uint32_t n, Body &body)
{
	if constexpr (std::is_void<decltype(body(l, n))>::value) {
		body(l, n);
		return true;
	} else {
		return __syncthreads_and(body(l, n));
	}
}

/* First thread. The lane's number, which is 0, tells the compiler that one thread of the warp
 * draws. Else it adds up what all of them draw, and waits for the result at once. */
template <uint32_t Chunk> inline __device__ uint32_t draw(uint32_t *ticket)
{
	uint32_t n;

	asm volatile("{\n\t"
		     ".reg .pred first;\n\t"
		     "mov.u32 %0, %%laneid;\n\t"
		     "setp.eq.u32 first, %0, 0;\n\t"
		     "@first atom.global.add.u32 %0, [%1], %2;\n\t"
		     "}"
		     : "=&r"(n)
		     : "l"(__cvta_generic_to_global(ticket)), "n"(Chunk)
		     : "memory");
	return n;
}

/* From number @n on, which this block has drawn with the rest of its chunk, until there are no more
 * or the block is to leave. Returns the number with which it goes on. One barrier between two
 * bodies: the first thread looks while the others finish. It draws the next chunk before the last
 * body of a chunk, which hides how long that takes. A body that may stop in the middle is drawn for
 * behind it: a block remembers one number only. */
template <uint32_t Chunk, class Body>
inline __device__ uint32_t each_until(loop &l, uint32_t *ticket, uint32_t total, uint32_t n,
				      Body body)
{
	__shared__ uint32_t drawn[2]; /* one may be read while the other is written */
	constexpr bool ahead = std::is_void<decltype(body(l, n))>::value;
	bool returns = false;

	for (uint32_t turn = 0; n < total && !returns;) {
		bool draws = (n + 1) % Chunk == 0;
		uint32_t next = 0;
		if (ahead && draws && first_thread())
			next = draw<Chunk>(ticket);
		if (!run_body(l, n, body))
			break;
		returns = l.must_return_([=] {
			if (draws)
				drawn[turn] = ahead ? next : draw<Chunk>(ticket);
		});
		n = draws ? drawn[turn] : n + 1;
		turn ^= draws;
	}
	return n;
}

template <uint32_t Chunk, class Body, class Then>
inline __device__ void each_from(loop &l, uint32_t *ticket, uint32_t total, uint32_t n, Body body,
				 Then then)
{
	while (n < total) {
		n = each_until<Chunk>(l, ticket, total, n, body);
		if (n < total && l.post_task([=](loop &later) {
			    each_from<Chunk>(later, ticket, total, n, body, then);
		    }) == 0)
			return;
	}
	then(l);
}

/* The first number of a block. */
template <uint32_t Chunk> inline __device__ uint32_t draw_first(uint32_t *ticket)
{
	static_assert(Chunk >= 1 && Chunk <= 1024, "a chunk of 1 to 1024 numbers");
	__shared__ uint32_t first;

	if (first_thread())
		first = draw<Chunk>(ticket);
	barrier();
	uint32_t n = first;
	barrier();
	return n;
}

} // namespace detail

/* Runs @body(l, n) for n = 0..@total-1, each once, shared among all blocks of the loop: the blocks
 * of a kernel that has many short ones. @ticket: a word in device memory that all blocks use, 0 at
 * first. @total: at most 2^31. @then(l) runs in each block when there are no more. The kernel may
 * leave after each body.
 *
 * A block draws @Chunk numbers at a time. For bodies of a few microseconds 4 to 16 are good: a draw
 * takes about one. For long ones 1 is, for the blocks then end at the same time. */
template <uint32_t Chunk = 1, class Body, class Then>
inline __device__ void each_block(loop &l, uint32_t *ticket, uint32_t total, Body body, Then then)
{
	detail::each_from<Chunk>(l, ticket, total, detail::draw_first<Chunk>(ticket), body, then);
}

template <uint32_t Chunk, class Body, class Leaving>
inline __device__ void loop::run_each_block(uint32_t *ticket, uint32_t total, Body body,
					    Leaving leaving)
{
	weir_loop_block &block = block_();
	bool ended = block.ended != 0, comes_back = block.started != 0;
	uint32_t n = block.number;

	begin_();
	if (!ended) {
		if (!comes_back)
			n = detail::draw_first<Chunk>(ticket);
		n = detail::each_until<Chunk>(*this, ticket, total, n, body);
		ended = n >= total;
		if (detail::first_thread())
			block.number = n;
	}
	leaving();
	const detail::knowledge known = {mask_(), !ended, 0, 0, 0}; /* ready: it has more to do */
	leave_(ended, known);
}

template <uint32_t Chunk, class Body>
inline __device__ void loop::run_each_block(uint32_t *ticket, uint32_t total, Body body)
{
	run_each_block<Chunk>(ticket, total, body, [] {});
}

} // namespace weir
