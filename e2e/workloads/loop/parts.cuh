/* Two ways to run parts of a kernel's work (parts.h) with scheduling points between them.
 *
 * A loop's callbacks are called through pointers, so the compiler gives each loop of a module the shared
 * memory and the registers of the most demanding callback in the module. Kernels that share a file
 * therefore cost each other blocks and cache: each program of the papers has its own. */
#pragma once

#include <weir/loop.cuh>

#include "parts.h"

/* What a thread carries from one piece to the next: in registers, and in device memory while the kernel is
 * away. */
struct nothing {};
template <class Carry> static __device__ Carry &carried(const parts &p)
{
	static_assert(sizeof(Carry) <= CARRIED_MOST, "there is no room");
	return static_cast<Carry *>(p.carried)[size_t(blockIdx.x) * blockDim.x + threadIdx.x];
}

/* In an event loop: the blocks draw pieces, Chunk at a time, and the kernel may leave after each. @piece(l, i,
 * carry) runs piece i of all; @leaving() runs before the block leaves. */
template <unsigned Chunk, class Carry, class Piece, class Leaving>
static __device__ void loop_over(const weir::loop_args &args, const parts &p, Piece piece, Leaving leaving)
{
	Carry carry = carried<Carry>(p);
	weir::loop loop(args);

	loop.run_each_block<Chunk>(
		p.ticket, p.total * p.repeat * p.pieces, [&](weir::loop &l, unsigned i) { return piece(l, i, carry); },
		[&] {
			leaving();
			carried<Carry>(p) = carry;
		});
}

/* Threads of an SM of a data center GPU. With so many, a kernel has 32 registers. */
#define SM_THREADS 2048

/* The original kernel, split into launches of a few parts each. @part: the work of part `n`. */
#define SPLIT_PORT(name, parameters, part)                                  \
	extern "C" __global__ void name##_split(UNPACK parameters, parts p) \
	{                                                                   \
		unsigned n = p.first + blockIdx.x;                          \
		part;                                                       \
	}
#define UNPACK(...) __VA_ARGS__
