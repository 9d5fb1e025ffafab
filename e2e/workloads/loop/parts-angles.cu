/* TPACF in parts: those of the original, in pieces of some of the other points. */
#include "../papers/angles.cuh"
#include "parts.cuh"

static __device__ void angle_part(const angle_work &work, const parts &p, unsigned n)
{
	angle_begin();
	angle_segment(work, n % p.grid[0], n / p.grid[0]);
	angle_end(work);
}

SPLIT_PORT(angle_pairs,
	   (const float4 *a, const float4 *b, unsigned na, unsigned nb, const float *limits,
	    unsigned long long *counts, int same),
	   angle_part({a, b, na, nb, limits, counts, same}, p, n))

/* The counts in shared memory go to device memory when the block leaves. */
extern "C" __global__ void __launch_bounds__(ANGLE_THREADS, ANGLE_SM_THREADS / ANGLE_THREADS)
	angle_pairs_loop(weir::loop_args args, const float4 *a, const float4 *b, unsigned na, unsigned nb,
			 const float *limits, unsigned long long *counts, int same, parts p)
{
	const angle_work work = {a, b, na, nb, limits, counts, same};

	angle_begin();
	loop_over<1, nothing>(
		args, p,
		[=](weir::loop &, unsigned i, nothing &) {
			unsigned n = i / ANGLE_PIECES % p.total, block = n % p.grid[0], segment = n / p.grid[0];

			/* Of @same a half of the pieces has no pairs, and the first segments have the most of
			 * them. With every other block from behind, there are always pieces that have. */
			if (block % 2)
				segment = p.grid[1] - 1 - segment;
			angle_piece<ANGLE_PIECE>(work, block,
						 segment * ANGLE_SEGMENT + i % ANGLE_PIECES * ANGLE_PIECE);
		},
		[=] { angle_end(work); });
}
