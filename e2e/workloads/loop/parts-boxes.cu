/* LavaMD in parts. */
#include "../papers/boxes.cuh"
#include "parts.cuh"

/* Half the threads on an SM: so the kernel has the registers for an inner loop of as many instructions
 * as the original's. With 32 registers the inner loop read a parameter again each time, and on an H100
 * the port took 1.086 times as long as the original. Fewer boxes at a time also end closer together. */
#define BOX_SM_THREADS (SM_THREADS / 2)

static __device__ __forceinline__ void box_part(const float4 *particles, float4 *force, float alpha,
						const parts &p, unsigned n)
{
	uint3 at = {n % p.grid[0], n / p.grid[0] % p.grid[1], n / p.grid[0] / p.grid[1]};

	box_forces_at(particles, force, alpha, at, dim3(p.grid[0], p.grid[1], p.grid[2]));
}

PORT(box_forces, BOX_THREADS, BOX_SM_THREADS, 1, (const float4 *particles, float4 *force, float alpha),
     box_part(particles, force, alpha, p, n))
