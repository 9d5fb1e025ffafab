/* Two ways to run parts of a kernel's work (parts.h) with scheduling points between them.
 *
 * A loop's callbacks are called through pointers, so the compiler gives each loop of a module the shared
 * memory and the registers of the most demanding callback in the module. Kernels that share a file
 * therefore cost each other blocks and cache: each program of the papers has its own. */
#pragma once

#include <weir/loop.cuh>

#include "parts.h"

/* In an event loop: the blocks draw parts, Chunk at a time, and the kernel may leave after each. */
template <unsigned Chunk, class Part> static __device__ void loop_over(const weir::loop_args &args, parts p, Part part)
{
	weir::loop loop(args);

	loop.run_each_block<Chunk>(p.ticket, p.total * p.repeat, [=](weir::loop &, unsigned n) { part(n); });
}

/* Threads of an SM of a data center GPU. With so many, a kernel has 32 registers. */
#define SM_THREADS 2048

/* NAME_split: the original kernel, split into launches of a few parts each. NAME_loop: in an event
 * loop, whose blocks draw @chunk parts at a time, and of which @sm_threads threads fit on an SM.
 * @parameters: those of the original kernel; @part: the work of part `n`.
 *
 * All originals have 32 registers or fewer. A loop without a bound would have more, and fewer of its
 * blocks would fit on an SM. */
#define PORT(name, threads, sm_threads, chunk, parameters, part)                                       \
	extern "C" __global__ void name##_split(UNPACK parameters, parts p)                            \
	{                                                                                              \
		unsigned n = p.first + blockIdx.x;                                                     \
		part;                                                                                  \
	}                                                                                              \
	extern "C" __global__ void __launch_bounds__(threads, (sm_threads) / (threads))                \
		name##_loop(weir::loop_args args, UNPACK parameters, parts p)                          \
	{                                                                                              \
		loop_over<chunk>(args, p, [=](unsigned drawn) {                                        \
			unsigned n = drawn % p.total;                                                  \
			part;                                                                          \
		});                                                                                    \
	}
#define UNPACK(...) __VA_ARGS__
