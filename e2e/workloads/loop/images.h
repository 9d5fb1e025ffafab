/* The picture of a library that is most like a query: shared by device code and host. */
#pragma once

#include <stdint.h>

#define IMAGE_BYTES   1024u /* 32 x 32 grey values */
#define IMAGE_GROUP   16u   /* queries that are compared together */
#define IMAGE_CHUNK   64u   /* pictures that a block of a launch compares */
#define IMAGE_READ    32u   /* pictures that a loop reads at once */
#define IMAGE_THREADS 256

/* A result: the sum of squared differences in the upper 32 bits, the picture's number below. The
 * smallest is the answer, so of equal pictures the first. */
typedef unsigned long long image_match;
#define IMAGE_NONE (~0ull)

struct image_job {
	char library[256], queries[256], result[256]; /* paths */
	uint32_t library_n, queries_n;
	uint32_t slots;      /* chunks of a block at a time */
	uint32_t ticket;     /* the next chunk */
	uint32_t done;       /* chunks that are compared */
	int32_t file;        /* of the loop: the library; -1 until block 0 has opened it */
	int32_t ready;       /* -1 until block 0 has read the queries */
	uint64_t queries_at; /* device addresses: the queries, */
	uint64_t best;       /* image_match[queries_n], */
	uint64_t chunks;     /* IMAGE_READ pictures for each slot of each block */
};
