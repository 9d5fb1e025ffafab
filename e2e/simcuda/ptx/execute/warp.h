/* A running block. 32 threads are a warp, each with its own pc. Lanes at the same pc of the same
 * frame are a group and execute together. Of all runnable groups, the one in the innermost call
 * runs first, then the one with the smallest pc. It stops where another group waits, so diverged
 * lanes reconverge. A lane that waits (at a barrier, or for the lanes of a `.sync` instruction)
 * keeps the pc of that instruction.
 *
 * Everything here belongs to the CPU thread that runs the block. Only global memory is shared.
 */
#pragma once

#include "simcuda/ptx/program/program.h"

#include <string.h>

#define PTX_NAMED_BARRIERS 16                       /* the program's */
#define PTX_BARRIERS       (PTX_NAMED_BARRIERS + 8) /* and one of each warp group */
#define PTX_GROUP_WARPS    4
#define PTX_ROW_BYTES      (PTX_LANES * sizeof(uint64_t))
#define PTX_SCRATCH_ROWS   5
#define PTX_ALL_LANES      UINT32_MAX

/* Rows of PTX_SPECIALS; X(name, PTX's name, bytes). */
#define PTX_SPECIAL_ROWS(X)                                                      \
	X(tid_x, "%tid.x", 4)                                                    \
	X(tid_y, "%tid.y", 4)                                                    \
	X(tid_z, "%tid.z", 4)                                                    \
	X(tid_w, "%tid.w", 4)                                                    \
	X(ntid_x, "%ntid.x", 4)                                                  \
	X(ntid_y, "%ntid.y", 4)                                                  \
	X(ntid_z, "%ntid.z", 4)                                                  \
	X(ntid_w, "%ntid.w", 4)                                                  \
	X(ctaid_x, "%ctaid.x", 4)                                                \
	X(ctaid_y, "%ctaid.y", 4)                                                \
	X(ctaid_z, "%ctaid.z", 4)                                                \
	X(ctaid_w, "%ctaid.w", 4)                                                \
	X(nctaid_x, "%nctaid.x", 4)                                              \
	X(nctaid_y, "%nctaid.y", 4)                                              \
	X(nctaid_z, "%nctaid.z", 4)                                              \
	X(nctaid_w, "%nctaid.w", 4)                                              \
	X(laneid, "%laneid", 4)                                                  \
	X(warpid, "%warpid", 4)                                                  \
	X(nwarpid, "%nwarpid", 4)                                                \
	X(smid, "%smid", 4)                                                      \
	X(nsmid, "%nsmid", 4)                                                    \
	X(gridid, "%gridid", 8)                                                  \
	X(lanemask_eq, "%lanemask_eq", 4)                                        \
	X(lanemask_le, "%lanemask_le", 4)                                        \
	X(lanemask_lt, "%lanemask_lt", 4)                                        \
	X(lanemask_ge, "%lanemask_ge", 4)                                        \
	X(lanemask_gt, "%lanemask_gt", 4)                                        \
	X(dynamic_smem_size, "%dynamic_smem_size", 4)                            \
	X(total_smem_size, "%total_smem_size", 4)                                \
	X(aggr_smem_size, "%aggr_smem_size", 4)                                  \
	X(zero, "%envreg0", 4) /* %envreg but 1, 2; what is 0 without cluster */ \
	X(envreg1, "%envreg1", 4)                                                \
	X(envreg2, "%envreg2", 4)                                                \
	X(one, "%cluster_nctaid.x", 4)                                           \
	X(dynamic_shared, "", 4) /* offset of extern .shared variables */        \
	X(dynamic_shared_wide, "", 8)

enum ptx_special {
#define X(name, text, bytes) PTX_SPECIAL_##name,
	PTX_SPECIAL_ROWS(X)
#undef X
		PTX_SPECIAL_COUNT
};

#define PTX_SPECIAL_REF(name) (PTX_SPECIAL_##name * (uint32_t)PTX_ROW_BYTES | PTX_SPECIALS)

/* Special registers whose value changes between reads. */
enum ptx_clock {
	PTX_CLOCK_LOW,
	PTX_CLOCK_HIGH,
	PTX_CLOCK,
	PTX_TIMER_LOW,
	PTX_TIMER_HIGH,
	PTX_TIMER,
};

/* Where a lane returns to. */
struct ptx_frame {
	const struct ptx_insn *call;
	uint32_t registers, locals; /* the caller's bases */
};

struct ptx_warp {
	/* The running group. */
	uint8_t *base[4]; /* by enum ptx_base */
	uint32_t pc, group;
	uint32_t stop;       /* the next pc at which other lanes of this frame wait */
	uint32_t jump_limit; /* after a jump below this pc the group still runs first */
	uint32_t regs;       /* frame: offset of its registers */

	uint32_t index;
	uint32_t live, at_barrier, at_sync,
		skip;   /* lane masks; skip: ran in this round, others have not */
	bool yields;    /* the warp waits for others: its slice is over */
	uint32_t carry; /* CC.CF */
	uint32_t lane_pc[PTX_LANES], lane_regs[PTX_LANES], lane_locals[PTX_LANES];
	uint32_t lane_depth[PTX_LANES];
	uint32_t sync_members[PTX_LANES]; /* of a lane in at_sync */
	uint8_t barrier[PTX_LANES];       /* of a lane in at_barrier */
	uint8_t *registers, *specials;
	uint8_t *stack; /* lane 0's local memory; the next lane's is block->stack_bytes further */
	struct ptx_frame *frames; /* [depth * PTX_LANES + lane] */
	struct ptx_block *block;
	uint64_t scratch[PTX_SCRATCH_ROWS][PTX_LANES] __attribute__((aligned(64)));
};

struct ptx_barrier {
	uint32_t expected; /* threads; 0: all of the block */
	uint32_t arrived;  /* whole warps, in threads */
	uint32_t passed;   /* of bar.red: threads whose predicate is true */
	uint32_t threads;  /* of bar.red: threads that came */
	bool in_use;
};

struct ptx_bulk;

struct ptx_block {
	const struct ptx_function *kernel;
	const struct ptx_launch *launch;
	struct ptx_warp *warps;
	uint32_t n_warps, live_warps;
	uint8_t *shared;
	uint32_t shared_bytes;
	uint32_t stack_bytes; /* local memory of a thread */
	uint8_t *stacks;
	uint64_t stacks_bytes;
	const uint8_t *params;
	uint32_t param_bytes;
	uint32_t sm;
	struct ptx_barrier barriers[PTX_BARRIERS];
	uint32_t (*partial)[PTX_BARRIERS]; /* [warp]: lanes that came while others of their warp did
					      not */
	uint8_t *mbarriers;                /* a bit for each 8 bytes of shared memory */
	struct ptx_bulk *bulk;             /* copies under way, oldest first (async/bulk.h) */
	uint32_t n_bulk;
	uint32_t bulk_groups; /* that were committed */
	bool wrote;           /* to global memory */
	bool permitted;       /* the next grid to start */
	struct ptx_error error;
};

static inline void *ptx_row(const struct ptx_warp *warp, uint32_t ref)
{
	return warp->base[ref & 3] + (ref & ~3u);
}

static inline uint32_t ptx_runnable(const struct ptx_warp *warp)
{
	return warp->live & ~warp->at_barrier & ~warp->at_sync;
}

/* Sets the pc of the lanes @mask, which wait there or continue there. */
static inline void ptx_park(struct ptx_warp *warp, uint32_t mask, uint32_t pc)
{
	for (; mask; mask &= mask - 1)
		warp->lane_pc[__builtin_ctz(mask)] = pc;
}

/* Ends the block. */
enum ptx_flow ptx_fault(struct ptx_warp *warp, const struct ptx_insn *insn, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Until all warps have ended; what ptx_run_block returns. exec.c */
void ptx_pause_here(void); /* calls what ptx_set_pause() was given */
int ptx_run_warps(struct ptx_block *block, const volatile int *stop);

/* Lanes have exited: releases lanes that waited for them. barrier.c */
void ptx_barriers_recheck(struct ptx_block *block, struct ptx_warp *warp);

/* Loops over the lanes of @mask. The compiler can vectorise it when all lanes are active: rows are
 * identical or do not overlap. */
#ifdef __clang__
#define PTX_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_VECTOR_LOOP _Pragma("GCC ivdep")
#endif
#define PTX_FOR_LANES(mask, lane, ...)                                             \
	do {                                                                       \
		if ((mask) == PTX_ALL_LANES) {                                     \
			PTX_VECTOR_LOOP                                            \
			for (uint32_t lane = 0; lane < PTX_LANES; lane++) {        \
				__VA_ARGS__                                        \
			}                                                          \
		} else {                                                           \
			for (uint32_t rest_ = (mask); rest_; rest_ &= rest_ - 1) { \
				uint32_t lane = (uint32_t)__builtin_ctz(rest_);    \
				__VA_ARGS__                                        \
			}                                                          \
		}                                                                  \
	} while (0)
