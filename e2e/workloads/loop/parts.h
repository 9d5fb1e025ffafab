/* How a port divides a kernel's work: shared by device code and host. */
#pragma once

#include <stdint.h>

/* The last parameter of each kernel in parts-*.cu. A part is one segment of the work of a block of
 * the original kernel: part n is segment n % segments of block n / segments. */
struct parts {
	uint32_t first; /* of a split launch */
	uint32_t total, segments;
	uint32_t repeat;  /* of a loop: all parts so often */
	uint32_t grid[3]; /* of the original kernel */
	uint32_t *ticket; /* of a loop: the next part; 0 at first */
};

/* Behind each part a block waits for its slowest warp. With parts of 8 bases that costs 0.8 % of
 * the suffixes' time, with 16 it costs 0.4 %, by a count of their steps. */
#define ANGLE_SEGMENT  1024 /* of the other points, in a part */
#define SUFFIX_SEGMENT 16   /* bases of a query, in a part */

/* Parts that a block of a loop draws at a time. Keys: their parts are short. Suffixes: all parts of
 * a query, so a block reads its queries once, as in the original kernel. */
#define KEYS_CHUNK   8
#define SUFFIX_CHUNK 4

/* Threads on an SM that look up suffixes, as many as in the original. With 2048 they evict each
 * other's data from the L1 cache: on an H100 a loop of them took 8.7 ms in place of 4.8 ms (a trial
 * with parts of 4 bases, behind commit 43ed7fea). */
#define SUFFIX_SM_THREADS 1024
