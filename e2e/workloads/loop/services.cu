/* Batches of requests that the CPU received: a block for each. */
#include "services.cuh"

extern "C" __global__ void echo_batch(const unsigned *slots, unsigned bytes, const uint8_t *requests,
				      uint8_t *replies, void *)
{
	size_t at = size_t(slots[blockIdx.x]) * bytes;

	services::echo(bytes, requests + at, replies + at);
}

/* The tiles of one product are the blocks of a row of the grid. */
extern "C" __global__ void matmul_batch(const unsigned *slots, unsigned n, const float *requests,
					float *replies, void *)
{
	size_t at = size_t(slots[blockIdx.x]) * n * n;
	const float *a = requests + 2 * at;

	services::multiply_tile(n, a, a + size_t(n) * n, replies + at, blockIdx.y);
}

extern "C" __global__ void kv_batch(const unsigned *slots, unsigned, const kv_message *requests,
				    kv_message *replies, kv_slot *table)
{
	unsigned slot = slots[blockIdx.x];

	services::kv(table, &requests[slot], &replies[slot]);
}
