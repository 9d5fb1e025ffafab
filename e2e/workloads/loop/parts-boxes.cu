/* LavaMD in parts: a box, in pieces of some boxes around it. */
#include "../papers/boxes.cuh"
#include "parts.cuh"

/* Half the threads on an SM: so the kernel has the registers for an inner loop of as many instructions
 * as the original's. With 32 registers the inner loop read a parameter again each time, and on an H100
 * the port took 1.086 times as long as the original. */
#define BOX_MOST_THREADS (SM_THREADS / 2)

struct box_carry {
	float4 mine, sum; /* the thread's particle, and the force on it so far */
	uint3 at;         /* its box */
};

static __device__ unsigned box_number(uint3 at, dim3 boxes)
{
	return (at.z * boxes.y + at.y) * boxes.x + at.x;
}

/* Piece @piece of box @n. */
static __device__ __forceinline__ void box_piece(const float4 *particles, float4 *force, float alpha, const parts &p,
						 unsigned n, unsigned piece, box_carry &carry)
{
	dim3 boxes(p.grid[0], p.grid[1], p.grid[2]);

	if (piece == 0)
		carry = {particles[n * BOX_PARTICLES + threadIdx.x], make_float4(0, 0, 0, 0),
			 {n % boxes.x, n / boxes.x % boxes.y, n / boxes.x / boxes.y}};
	for (int around = piece * BOX_PIECE; around < (piece + 1) * BOX_PIECE; around++) {
		int other = box_neighbour(carry.at, boxes, around);

		if (other >= 0)
			box_add(particles + other * BOX_PARTICLES, alpha, carry.mine, carry.sum);
	}
	if (piece == BOX_PIECES - 1)
		force[box_number(carry.at, boxes) * BOX_PARTICLES + threadIdx.x] = carry.sum;
}

static __device__ void box_part(const float4 *particles, float4 *force, float alpha, const parts &p, unsigned n)
{
	box_carry carry;

	for (unsigned piece = 0; piece < BOX_PIECES; piece++)
		box_piece(particles, force, alpha, p, n, piece, carry);
}

SPLIT_PORT(box_forces, (const float4 *particles, float4 *force, float alpha), box_part(particles, force, alpha, p, n))

extern "C" __global__ void __launch_bounds__(BOX_THREADS, BOX_MOST_THREADS / BOX_THREADS)
	box_forces_loop(weir::loop_args args, const float4 *particles, float4 *force, float alpha, parts p)
{
	loop_over<BOX_PIECES, box_carry>(
		args, p,
		[=](weir::loop &, unsigned i, box_carry &carry) {
			box_piece(particles, force, alpha, p, i / BOX_PIECES % p.total, i % BOX_PIECES, carry);
		},
		[] {});
}
