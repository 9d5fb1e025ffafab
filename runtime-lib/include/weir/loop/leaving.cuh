/* Trials of leaving. Where WEIR_LOOP_LEAVING is defined before weir/loop.cuh is included, the kernel
 * leaves the GPU again and again, as if a higher level had work, and comes back at once. So it shows
 * whether all is saved and how soon it leaves. Elsewhere there is nothing of it in the kernel. */
#pragma once

#include "weir/loop/memory.cuh"

#ifdef WEIR_LOOP_LEAVING
/* One file of a program has it, and one loop at a time. The host may write 0. */
struct weir_loop_leaving {
	unsigned long long longest; /* ns from when a block knows that all must leave until the last
				       one has saved its state; of all times */
	unsigned long long times, asked, back;
	unsigned took[256]; /* times that took so many us; the last: or more */
};
extern "C" {
__device__ weir_loop_leaving weir_loop_leaving;
}
#endif

namespace weir
{

namespace detail
{

constexpr uint64_t leaving_every = 200000; /* ns from one time to the next, at least */

/* First thread, which polls. True: all must leave. */
inline __device__ bool leaving_asks(uint64_t now)
{
#ifdef WEIR_LOOP_LEAVING
	if (now < peek(&weir_loop_leaving.back) + leaving_every)
		return false;
	poke(&weir_loop_leaving.asked, static_cast<unsigned long long>(now));
	return true;
#else
	(void)now;
	return false;
#endif
}

/* First thread of the last block. @asked: it left for others. */
inline __device__ void leaving_ends(bool asked)
{
#ifdef WEIR_LOOP_LEAVING
	uint64_t since = peek(&weir_loop_leaving.asked), end = now();
	if (!asked || !since)
		return;
	poke(&weir_loop_leaving.asked, 0ull);
	poke(&weir_loop_leaving.back, static_cast<unsigned long long>(end));
	weir_loop_leaving.times++;
	weir_loop_leaving.took[end - since < 255000 ? (end - since) / 1000 : 255]++;
	if (end - since > weir_loop_leaving.longest)
		weir_loop_leaving.longest = end - since;
#else
	(void)asked;
#endif
}

} // namespace detail
} // namespace weir
