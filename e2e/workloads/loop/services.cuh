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

/* The part of a tile's operands that MATMUL_STEP terms of its sums need. Each thread brings 4 elements of
 * both. Those outside of the matrices are 0. */
struct step {
	float4 a, b;
};

static __device__ float4 quad(const float *at, bool is_inside)
{
	return is_inside ? *reinterpret_cast<const float4 *>(at) : make_float4(0, 0, 0, 0);
}

static __device__ step load_step(unsigned n, const float *a, const float *b, unsigned row, unsigned column, unsigned k)
{
	unsigned a_row = row + threadIdx.x / 4, a_k = k + threadIdx.x % 4 * 4;
	unsigned b_k = k + threadIdx.x / 16, b_column = column + threadIdx.x % 16 * 4;

	return {quad(a + size_t(a_row) * n + a_k, a_row < n), quad(b + size_t(b_k) * n + b_column, b_column < n)};
}

/* One tile of the product of two n x n matrices, by MATMUL_THREADS threads. Each loads for the next step
 * while it computes with this one. */
static __device__ void multiply_tile(unsigned n, const float *a, const float *b, float *c, unsigned tile)
{
	__shared__ alignas(16) float tile_a[MATMUL_STEP][MATMUL_TILE + 4], tile_b[MATMUL_STEP][MATMUL_TILE];
	unsigned x = threadIdx.x % 16, y = threadIdx.x / 16, across = (n + MATMUL_TILE - 1) / MATMUL_TILE;
	unsigned row = tile / across * MATMUL_TILE, column = tile % across * MATMUL_TILE;
	step next = load_step(n, a, b, row, column, 0);
	float4 sum[4] = {};

	for (unsigned k = 0; k < n; k += MATMUL_STEP) {
		float *to = &tile_a[threadIdx.x % 4 * 4][threadIdx.x / 4];

		to[0] = next.a.x;
		to[MATMUL_TILE + 4] = next.a.y;
		to[2 * (MATMUL_TILE + 4)] = next.a.z;
		to[3 * (MATMUL_TILE + 4)] = next.a.w;
		*reinterpret_cast<float4 *>(&tile_b[y][4 * x]) = next.b;
		__syncthreads();
		if (k + MATMUL_STEP < n)
			next = load_step(n, a, b, row, column, k + MATMUL_STEP);
#pragma unroll
		for (unsigned i = 0; i < MATMUL_STEP; i++) {
			float4 rows = *reinterpret_cast<const float4 *>(&tile_a[i][4 * y]);
			float4 columns = *reinterpret_cast<const float4 *>(&tile_b[i][4 * x]);
			const float of[4] = {rows.x, rows.y, rows.z, rows.w};

#pragma unroll
			for (unsigned r = 0; r < 4; r++) {
				sum[r].x += of[r] * columns.x;
				sum[r].y += of[r] * columns.y;
				sum[r].z += of[r] * columns.z;
				sum[r].w += of[r] * columns.w;
			}
		}
		__syncthreads();
	}
	for (unsigned r = 0; r < 4; r++)
		if (row + 4 * y + r < n && column + 4 * x < n)
			*reinterpret_cast<float4 *>(c + size_t(row + 4 * y + r) * n + column + 4 * x) = sum[r];
}

static __device__ unsigned matmul_tiles(unsigned n)
{
	unsigned across = (n + MATMUL_TILE - 1) / MATMUL_TILE;

	return across * across;
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
