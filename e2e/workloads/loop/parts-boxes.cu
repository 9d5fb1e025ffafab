/* LavaMD in parts. */
#include "../papers/boxes.cuh"
#include "parts.cuh"

/* Not inlined: so its inner loop is that of the original kernel. Beside the loop's own values, one more
 * instruction of 101 is needed. */
static __device__ __noinline__ void box_part(const float4 *particles, float4 *force, float alpha, const parts &p,
					     unsigned n)
{
	uint3 at = {n % p.grid[0], n / p.grid[0] % p.grid[1], n / p.grid[0] / p.grid[1]};

	box_forces_at(particles, force, alpha, at, dim3(p.grid[0], p.grid[1], p.grid[2]));
}

PORT(box_forces, BOX_THREADS, 1, (const float4 *particles, float4 *force, float alpha), box_part(particles, force, alpha, p, n))
