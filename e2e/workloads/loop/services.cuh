/* The services' answers on the GPU. A whole block computes one answer; all its threads call with
 * the same arguments. The answer is in @reply when the function returns. */
#pragma once

#include "services.h"

namespace services
{

static __device__ void copy(void *to, const void *from, unsigned bytes)
{
	for (unsigned i = threadIdx.x; i < bytes / 16; i += blockDim.x)
		static_cast<uint4 *>(to)[i] = static_cast<const uint4 *>(from)[i];
}

static __device__ void echo(unsigned bytes, const void *request, void *reply)
{
	copy(reply, request, bytes);
	__syncthreads();
}

/* One tile of the product of two n x n matrices; blocks of MATMUL_TILE * MATMUL_TILE threads. */
static __device__ void multiply_tile(unsigned n, const float *a, const float *b, float *c, unsigned tile)
{
	__shared__ float tile_a[MATMUL_TILE][MATMUL_TILE], tile_b[MATMUL_TILE][MATMUL_TILE];
	unsigned x = threadIdx.x % MATMUL_TILE, y = threadIdx.x / MATMUL_TILE, across = n / MATMUL_TILE;
	unsigned column = tile % across * MATMUL_TILE + x, row = tile / across * MATMUL_TILE + y;
	float sum = 0;

	for (unsigned k = 0; k < n; k += MATMUL_TILE) {
		tile_a[y][x] = a[row * n + k + x];
		tile_b[y][x] = b[(k + y) * n + column];
		__syncthreads();
		for (unsigned i = 0; i < MATMUL_TILE; i++)
			sum += tile_a[y][i] * tile_b[i][x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

static __device__ unsigned matmul_tiles(unsigned n)
{
	return (n / MATMUL_TILE) * (n / MATMUL_TILE);
}

/* The slot of @key, or nullptr: there is none, and with @adds no room for one. One thread calls. */
static __device__ kv_slot *kv_find(kv_slot *table, unsigned long long key, bool adds)
{
	unsigned at = kv_first_slot(key);

	for (unsigned i = 0; i < KV_SLOTS; i++, at = (at + 1) & (KV_SLOTS - 1)) {
		unsigned long long there = *static_cast<volatile unsigned long long *>(&table[at].key);

		if (!there && adds)
			there = atomicCAS(&table[at].key, 0ull, key);
		if (there == key || (!there && adds))
			return &table[at];
		if (!there)
			return nullptr;
	}
	return nullptr;
}

static __device__ void lock(unsigned *word)
{
	while (atomicCAS(word, 0u, 1u))
		__nanosleep(100);
	__threadfence();
}

static __device__ void unlock(unsigned *word)
{
	__threadfence();
	atomicExch(word, 0u);
}

static __device__ void copy_value(volatile uint8_t *to, const volatile uint8_t *from)
{
	for (unsigned i = 0; i < KV_VALUE_BYTES; i += 4)
		*reinterpret_cast<volatile unsigned *>(to + i) = *reinterpret_cast<const volatile unsigned *>(from + i);
}

/* Puts or gets the value; false: there is none yet. */
static __device__ bool kv_exchange(kv_slot *slot, bool puts, const kv_message *request, kv_message *reply)
{
	lock(&slot->lock);
	volatile uint32_t *filled = &slot->filled;
	if (puts) {
		copy_value(slot->value, request->value);
		*filled = 1;
	}
	bool has_value = *filled;
	if (has_value)
		copy_value(reply->value, slot->value);
	unlock(&slot->lock);
	return has_value;
}

/* The first thread works, as values are small. */
static __device__ void kv(kv_slot *table, const kv_message *request, kv_message *reply)
{
	if (threadIdx.x == 0) {
		bool puts = request->word == KV_PUT;
		kv_slot *slot = kv_find(table, request->key, puts);

		reply->key = request->key;
		reply->tag = request->tag;
		copy_value(reply->value, request->value);
		bool done = slot && kv_exchange(slot, puts, request, reply);
		reply->word = puts ? (done ? KV_STORED : KV_FULL) : (done ? KV_FOUND : KV_MISSING);
	}
	__syncthreads();
}

}
