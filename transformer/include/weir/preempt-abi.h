/* What rewritten kernels and their launcher agree on: the hidden parameters, appended behind the
 * kernel's own, and the words in device memory that they point at. Little endian, naturally
 * aligned.
 *
 * A hidden parameter is one struct, `.param .align 8 .b8 name[sizeof]`, the last of the kernel.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PREEMPT_ABI 6

/* Sliced: the launch is a part of the grid, of grid dimensions of its own. */
struct weir_slice {
	uint32_t first[3]; /* added to %ctaid */
	uint32_t grid[3];  /* instead of %nctaid */
			   /* Addresses, as behind struct weir_persistent. */
};
static_assert(sizeof(struct weir_slice) == 24, "layout");

/* Persistent: @n blocks of the kernel's own block dimensions are launched as a grid of n x 1 x 1,
 * the workers. Each draws tickets; a ticket stands for `chunk` consecutive blocks of the grid, x
 * fastest, or towards the end of the grid for `fine` ones and at last for one, and whoever drew it
 * runs them one after the other; or for as many that are `across` apart.
 *
 * For a launch the launcher takes words that no unfinished launch uses, and a serial that is larger
 * by 1 than that of the launch before (modulo 2^32). It writes nothing to the words, which were all
 * zero once, when they were allocated: each launch leaves them ready for the next. It then launches
 * the kernel, and behind it in the stream, with the very same parameters, any number of
 * continuations (of any number of workers each), with gates in front of them; the last of them is
 * not asked to leave (demand and hold 0), and behind it the kernel is finished. The launch is
 * finished when `done == serial`, and only then may what follows it in the stream start. What the
 * kernel wrote is there for others as it is natively: behind the launch, in its stream.
 *
 * Why not a wait for `done` instead of the last continuation: what a wait waits for must not come
 * from another stream, since streams share channels (e2e/bench/bench-channels.c).
 *
 * A launch that finds (int32_t)(done - serial) >= 0 touches nothing: it may be stale, and its words
 * a later launch's. Launches that are not stale and share words must not overlap. */
struct weir_persistent {
	uint64_t words;   /* address of the struct weir_words */
	uint64_t demand;  /* of a uint64_t, non-zero while the kernel is to leave; 0: never asked */
	uint64_t hold;    /* of a uint32_t of the same meaning; 0: there is none */
	uint32_t grid[3]; /* as the program wanted it */
	uint32_t blocks;  /* their product: 1 .. 2^31 - 1 */
	uint32_t chunk;   /* blocks of a ticket: 1 .. blocks */
	uint32_t tickets; /* in all; at most 2^30. Workers: at most 2^20 */
	uint32_t serial;  /* of the launch, not 0 */
	uint32_t period;  /* nanoseconds of %globaltimer between two looks at demand and hold */
	/* Of a uint64_t that the host can read without the driver, or 0. The last worker of each
	 * launch stores there, once, `evictions << 32 | done` as they then are in the words, which
	 * from then on another launch may use. */
	uint64_t report;
	/* Resumable only: where workers save their blocks, worker w at saves + w * save_stride,
	 * aligned to 256; not used if the kernel has no safe points (weir/transform.h). All
	 * continuations of a launch have as many workers as its first, at most 65535. */
	uint64_t saves;
	uint64_t save_stride;
	uint32_t coarse; /* tickets of `chunk` blocks, the others are of `fine`; 0: all are */
	uint32_t fine;
	uint32_t single; /* the first ticket of one block; `tickets`: there are none */
	/* 1: the next ticket is drawn when the last block of one begins, which hides how long that
	 * takes; who is asked to leave runs up to a block more. 0: when it ends. Resumable: 0. */
	uint32_t ahead;
	/* Blocks of a ticket, but for those of one block, are so far apart in the order of the
	 * grid, and `step` along its axes. 1, {1, 0, 0}: they follow each other. Else as many
	 * tickets as this begin at blocks that follow each other, so that blocks that run at a time
	 * lie together as they do natively; `coarse` and `single` are multiples of it, and @step is
	 * along the last axis that is longer than 1. At most as many as there are workers: blocks
	 * may wait for those before them. */
	uint32_t across;
	uint32_t step[3];
	/* 1: the first launch with this serial, which finds the words as the one before left them,
	 * and need not look. 0: a continuation, or it may be one. */
	uint32_t fresh;
	uint32_t reserved;
	/* In a module of its own (weir/object.h): behind the struct, and in the same parameter, the
	 * addresses of the variables in global memory that the kernel uses, uint64_t each, in the
	 * order of the object's symbols. */
};
static_assert(sizeof(struct weir_persistent) == 120, "layout");
static_assert(offsetof(struct weir_persistent, serial) == 48, "layout");
static_assert(offsetof(struct weir_persistent, saves) == 64, "layout");

#define WEIR_TICKET_CLOSED 0x80000000u

/* In device memory, one sector. Kernels write them, the launcher may read.
 *
 * - next_poll: who draws a ticket, or comes by a safe point, when that time has come, and wins the
 *   compare-and-swap that moves it by a period, looks at demand and hold.
 * - ticket: the next one; drawn by atomic addition of 1. In persistent worker w has ticket
 *   `resume + w` without drawing, so what is drawn counts from the number of workers on. Who saw
 *   the demand sets its top bit, the first to do so writes the next ticket that would have been
 *   drawn to `restart`. All draws from then on are refused (they are larger than any ticket), so
 *   `restart` is the smallest refused one.
 * - left: workers that have left; in its upper half, those of them that have saved a block. The
 *   last to add itself puts the words in order for the next launch, and writes done if all tickets
 *   were given out and no block is saved.
 * - resume: in persistent, the first ticket of the launch to come, as `ticket` is. In resumable, a
 *   worker of a later launch looks at its save only if this is the launch's serial. Each worker has
 *   then left word there whether it has saved something, so that saves may lie in any memory. */
struct weir_words {
	uint64_t next_poll; /* %globaltimer */
	uint32_t done;      /* serial of the last launch that finished */
	uint32_t evictions; /* launches that left before the end, ever; by the last worker to leave
			     */
	uint32_t ticket;
	uint32_t restart;
	uint32_t left;
	uint32_t resume; /* ticket, or serial of the launch that has saved blocks; or 0 */
};
static_assert(sizeof(struct weir_words) == 32, "one sector: align to 32");
static_assert(offsetof(struct weir_words, ticket) == 16, "layout");
