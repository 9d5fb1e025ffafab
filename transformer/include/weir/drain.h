/* How long a launcher lets blocks of a closed launch run on instead of saving them
 * (weir_persistent.drain). */
#pragma once

#include <stdint.h>

/* Saving a block takes at least this long: two barriers, a fence, loops over memory. */
#define WEIR_SAVE_NS 3000u

/* The least number of cycles until all blocks that are on the GPU at once are saved: @bytes in all,
 * written as fast as the memory can. A block that ran on for longer than saving takes would delay
 * the end of the launch. Clocks and the width of the memory's bus in bits are as
 * cuDeviceGetAttribute() reports them. 0: one of them is not known. */
static inline uint32_t weir_save_cycles(uint64_t bytes, int clock_khz, int memory_khz, int bus_bits)
{
	double transfers_per_ms = 2.0 * memory_khz; /* two in a cycle */
	double bytes_per_ns = transfers_per_ms * bus_bits / 8 / 1e6;
	double cycles;

	if (clock_khz <= 0 || bytes_per_ns <= 0)
		return 0;
	cycles = (WEIR_SAVE_NS + (double)bytes / bytes_per_ns) * clock_khz / 1e6;
	return cycles < INT32_MAX ? (uint32_t)cycles : INT32_MAX;
}
