/* How long a launcher lets blocks of a closed launch run on instead of saving them
 * (weir_persistent.drain). */
#pragma once

#include <stdint.h>

/* From a look that finds the launch closed until a small block is saved and its worker has left:
 * two barriers, a fence, loops over memory. */
#define WEIR_SAVE_NS 1300u
/* So many times as many blocks may be saved as are: the others end before they look. */
#define WEIR_SAVED_PART 4

/* Cycles until the last worker has left if all workers save. SMs look at about the same moment: on
 * an H100 their clocks seem to run in step. So a block that ends within this time does not delay
 * the end of the launch. @bytes: what all blocks that are on the GPU at once may save, written as
 * fast as the memory can. Clocks and the width of the memory's bus in bits are as
 * cuDeviceGetAttribute() reports them. 0: one of them is not known. */
static inline uint32_t weir_drain_cycles(uint64_t bytes, int clock_khz, int memory_khz,
					 int bus_bits)
{
	double transfers_per_ms = 2.0 * memory_khz; /* two in a cycle */
	double bytes_per_ns = transfers_per_ms * bus_bits / 8 / 1e6;
	double cycles;

	if (clock_khz <= 0 || bytes_per_ns <= 0)
		return 0;
	cycles = (WEIR_SAVE_NS + (double)bytes / WEIR_SAVED_PART / bytes_per_ns) * clock_khz / 1e6;
	return cycles < INT32_MAX ? (uint32_t)cycles : INT32_MAX;
}
