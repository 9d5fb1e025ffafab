/* The picture of a library that is most like a query: shared by device code and host. */
#pragma once

#include <stdint.h>

#define IMAGE_BYTES 1024u /* 32 x 32 grey values */
#define IMAGE_GROUP 16u   /* queries that are compared together; 2 for each 8 lanes */
#define IMAGE_CHUNK 64u   /* pictures that a block compares them with */
#define IMAGE_TILE  4u    /* pictures that a warp compares with a query at a time */
#define IMAGE_READ  256u  /* pictures that a loop reads at once; IMAGE_CHUNK divides it */
#define IMAGE_RANGE 256u  /* queries of a part of a loop's work */
/* Callbacks of a block of a loop: a read, the queries, the result, the one that runs, and the one
 * that it posts. */
#define IMAGE_SLOTS   5
#define IMAGE_THREADS 256

/* A result: the sum of squared differences in the upper 32 bits, the picture's number below. The
 * smallest is the answer, so of equal pictures the first. */
typedef unsigned long long image_match;
#define IMAGE_NONE (~0ull)

struct image_job {
	char library[256], queries[256], result[256]; /* paths */
	uint32_t library_n, queries_n;
	uint32_t reads;      /* the next read, */
	uint32_t parts;      /* and the next part: a chunk of the library, a range of the queries */
	uint32_t done;       /* parts that are compared */
	int32_t file, out;   /* of the loop: library and result; -1 until block 0 has opened them */
	int32_t ready;       /* -1 until block 0 has read the queries */
	uint64_t queries_at; /* device addresses: the queries, */
	uint64_t best;       /* image_match[queries_n], */
	uint64_t pictures;   /* the library, */
	uint64_t read;       /* int32_t of each read: -1 until it is there */
};
