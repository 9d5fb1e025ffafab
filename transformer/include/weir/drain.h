/* How long a launcher lets blocks of a closed launch run on instead of saving them
 * (weir_persistent.drain). */
#pragma once

#include <stdint.h>

/* Saving a block takes at least this long: two barriers, a fence, loops over memory. */
#define WEIR_SAVE_NS 4000u
/* All blocks together write at a part of so many of the memory's bandwidth. */
#define WEIR_SAVE_BANDWIDTH 2u

/* Cycles of %clock until all blocks that are on the GPU at once are saved, if they have @bytes
 * together: of a GPU with this clock, memory clock and width of the memory's bus in bits, as
 * cuDeviceGetAttribute() reports them. 0: one of them is not known. */
static inline uint32_t weir_save_cycles(uint64_t bytes, int clock_khz, int memory_khz, int bus_bits)
{
	double transfers_per_ms = 2.0 * memory_khz; /* two in a cycle */
	double bytes_per_ns = transfers_per_ms * bus_bits / 8 / 1e6 / WEIR_SAVE_BANDWIDTH;
	double cycles;

	if (clock_khz <= 0 || bytes_per_ns <= 0)
		return 0;
	cycles = (WEIR_SAVE_NS + (double)bytes / bytes_per_ns) * clock_khz / 1e6;
	return cycles < INT32_MAX ? (uint32_t)cycles : INT32_MAX;
}
