/* Kernels of many short blocks, which a loop's blocks share among them. */
#pragma once

#include "weir/loop/run.cuh"

namespace weir
{

namespace detail
{

/* From number @n on, which this block has drawn. One barrier between two bodies: the first thread
 * draws the next number and looks while the others finish. */
template <class Body, class Then>
inline __device__ void each_from(loop &l, uint32_t *ticket, uint32_t total, uint32_t n, Body body,
				 Then then)
{
	__shared__ uint32_t drawn[2]; /* one may be read while the other is written */

	for (uint32_t turn = 0; n < total; turn ^= 1) {
		body(l, n);
		bool returns = l.must_return_([=] { drawn[turn] = atomicAdd(ticket, 1u); });
		n = drawn[turn];
		if (returns && n < total && l.post_task([=](loop &later) {
			    each_from(later, ticket, total, n, body, then);
		    }) == 0)
			return;
	}
	then(l);
}

} // namespace detail

/* Runs @body(l, n) for n = 0..@total-1, each once, shared among all blocks of the loop: the blocks
 * of a kernel that has many short ones. @ticket: a word in device memory that all blocks use, 0 at
 * first. @then(l) runs in each block when there are no more. The kernel may leave after each body.
 */
template <class Body, class Then>
inline __device__ void each_block(loop &l, uint32_t *ticket, uint32_t total, Body body, Then then)
{
	__shared__ uint32_t first;

	if (detail::first_thread())
		first = atomicAdd(ticket, 1u);
	detail::barrier();
	uint32_t n = first;
	detail::barrier();
	detail::each_from(l, ticket, total, n, body, then);
}

} // namespace weir
