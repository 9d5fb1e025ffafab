/* What clients and servers of the ports say to each other over TCP. A request and its reply have a
 * fixed number of bytes, which both sides derive from the service and its size. Device code
 * includes this, too. */
#pragma once

#include <stdint.h>

/* echo: any bytes, which come back. Size: bytes. */
#define ECHO_BYTES_MAX (64u << 10)

/* matmul: two square matrices of floats, row-major; the reply is their product. Size: rows. */
#define MATMUL_TILE     64  /* rows and columns of the product that a block computes together */
#define MATMUL_STEP     16  /* of its sums at a time; divides the number of rows */
#define MATMUL_THREADS  256 /* of a block; each has 4 x 4 elements of a tile */
#define MATMUL_ROWS_MAX 512u

/* kv: a key-value store. Size: not used. */
enum kv_word { KV_GET, KV_PUT, KV_FOUND, KV_MISSING, KV_STORED, KV_FULL };

#define KV_VALUE_BYTES 48

struct kv_message {
	uint64_t key; /* not 0 */
	uint32_t word;
	uint32_t tag; /* comes back in the reply */
	uint8_t value[KV_VALUE_BYTES];
};

/* A slot of a table with open addressing. Keys never leave. */
struct kv_slot {
	unsigned long long key; /* 0: free */
	uint32_t lock;          /* 1: somebody reads or writes the value */
	uint32_t filled;        /* 1: the value is there; on the GPU the key comes before it */
	uint8_t value[KV_VALUE_BYTES];
};

#define KV_SLOTS (1u << 16) /* a power of two */

#ifdef __CUDACC__
#define ON_BOTH_SIDES static __host__ __device__ inline
#else
#define ON_BOTH_SIDES static inline
#endif

ON_BOTH_SIDES uint32_t kv_first_slot(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) & (KV_SLOTS - 1);
}
