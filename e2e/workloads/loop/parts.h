/* How a port divides a kernel's work: shared by device code and host. */
#pragma once

#include <stdint.h>

#include "../papers/count.h"
#include "../papers/particles.h"
#include "../papers/suffix.h"

/* The last parameter of each kernel in parts-*.cu. A part is one segment of the work of a block of
 * the original kernel: part n is segment n % segments of block n / segments. A split launch has a
 * block for each. A loop takes a part in pieces: piece i of all belongs to part i / pieces % total.
 */
struct parts {
	uint32_t first; /* of a split launch */
	uint32_t total, segments;
	uint32_t pieces;  /* of a part, in a loop */
	uint32_t repeat;  /* of a loop: all parts so often */
	uint32_t grid[3]; /* of the original kernel */
	uint32_t *ticket; /* of a loop: the next piece; 0 at first */
	void *carried;    /* of a loop: CARRIED_MOST bytes for each thread */
};
#define CARRIED_MOST 48

/* A loop leaves when all blocks on an SM have ended their pieces, which share the SM. So how soon
 * it leaves depends on the pieces and on the number of blocks. What is said here was measured on an
 * H100 in a trial: the time of all against the original's, and how long 99 of 100 leaves took.
 *
 * Threads of boxes on each SM, in four passes:
 *   896  0.988x  48 us
 *   768  0.993x  43 us
 *   640  1.014x  36 us
 * Points in a piece, and threads on each SM (all at commit b8d300ac):
 *   64  1536  0.965x  54 us
 *   64  1280  0.982x  47 us
 *   64  1024  1.054x  38 us
 *   32  1536  0.986x  31 us */
#define BOX_PIECE      3 /* boxes around */
#define BOX_PIECES     (BOX_AROUND / BOX_PIECE)
#define BOX_SM_THREADS 768

#define ANGLE_PIECE      32 /* other points */
#define ANGLE_PIECES     (ANGLE_SEGMENT / ANGLE_PIECE)
#define ANGLE_SM_THREADS 1536

#define SUFFIX_SEGMENT 16 /* bases of a query, in a part */
/* Halvings of the array between two scheduling points of a warp. One pass over 131072 queries took
 * 1.047x of the original's time with 4, and left within 25 us; with 7 1.038x and 34 us. Four passes
 * took 1.008x with 10, and left within 64 us (H100). */
#define SUFFIX_HALVINGS 8

/* Pieces that a block of a loop draws at a time. Boxes: all of a box, for their sums are carried.
 * Suffixes: all of a query, so a block reads its queries once, as in the original kernel. */
#define KEYS_CHUNK   8
#define SUFFIX_CHUNK (SUFFIX_QUERY / SUFFIX_SEGMENT)

/* Threads on an SM that look up suffixes, as many as in the original. With 2048 they evict each
 * other's data from the L1 cache: on an H100 a loop of them took 8.7 ms in place of 4.8 ms (a trial
 * with parts of 4 bases, behind commit 43ed7fea). */
#define SUFFIX_SM_THREADS 1024
