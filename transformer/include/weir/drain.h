/* How long a launcher lets blocks of a closed launch run on instead of saving them
 * (weir_persistent.drain). */
#pragma once

#include <stdint.h>

/* Until all workers have looked whether the launch is closed: 8000 cycles. */
#define WEIR_SEE_NS 4000u
/* Until a worker has saved a small block and left: two barriers, a fence, loops over memory. */
#define WEIR_SAVE_NS 1000u
/* All blocks are saved so many times as fast as the memory could take what they may save: the L2
 * cache takes the writes, and many blocks end by themselves. */
#define WEIR_CACHE 8
/* The most. */
#define WEIR_DRAIN_NS 1000000u

struct weir_drain {
	uint32_t ns, pace; /* weir_persistent.drain and .pace */
};

/* @ns: about when the last worker would have left if all workers saved. A block that ends until
 * then does not delay the end of the launch. @bytes: what all blocks that are on the GPU at once
 * save. Clocks and the width of the memory's bus in bits are as cuDeviceGetAttribute() reports
 * them. All 0: one of them is not known. */
static inline struct weir_drain weir_drain_of(uint64_t bytes, int clock_khz, int memory_khz,
					      int bus_bits)
{
	double transfers_per_ms = 2.0 * memory_khz; /* two in a cycle */
	double bytes_per_ns = transfers_per_ms * bus_bits / 8 / 1e6;
	struct weir_drain drain = {0};
	double ns;

	if (clock_khz <= 0 || bytes_per_ns <= 0)
		return drain;
	ns = WEIR_SEE_NS + WEIR_SAVE_NS + (double)bytes / (WEIR_CACHE * bytes_per_ns);
	drain.ns = ns < WEIR_DRAIN_NS ? (uint32_t)ns : WEIR_DRAIN_NS;
	drain.pace = (uint32_t)(clock_khz * 65536.0 / 1e6);
	return drain;
}
