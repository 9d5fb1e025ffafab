// clang-format off
/* A worker's save: what the threads of a block store when they leave, and load when they resume.
 *
 *	header		serial of the launch, 0: nothing saved; others (safe-point.h)
 *	shared memory	each variable that some safe point needs (kept.c)
 *	T x 4 bytes	safe point
 *	T x 8 bytes	64-bit registers: first register of all threads, second register ...
 *	T x 4 bytes	other registers, likewise
 *	T x ...		local memory
 *	dynamic shared memory
 *
 * T is the number of threads, rounded up to whole warps. Threads may have left at different safe
 * points, so the registers' part fits the point with most live registers.
 */
// clang-format on
#pragma once

#include "passes/pass.h"
#include "passes/safe-point.h"
#include "passes/save/shared-live.h"

#define SAVE_VARIABLES_MAX 64u

/* Variables in shared and local memory. All variables without a size share one place; the first
 * with the largest alignment stands for them. */
struct variable_set {
	struct variable *list[SAVE_VARIABLES_MAX];
	unsigned n;               /* above SAVE_VARIABLES_MAX: the list is incomplete */
	struct variable *dynamic; /* without a size, or NULL */
};

/* The registers live at a safe point, by size. */
struct alive {
	struct reg **wide, **whole, **half, **flags;
	unsigned n_wide, n_whole, n_half, n_flags;
	struct reg *unsavable; /* one that cannot be saved, or NULL */
};

struct saver {
	struct rewrite *rewrite;
	struct function *f;
	struct safe *safe;
	struct cfg cfg;
	struct live live;
	struct block *leave_rest, *final;
	bool *is_constant;          /* by reg->id: not saved (constants.c) */
	struct alive *alive;        /* by safe point */
	uint32_t fixed;             /* header and shared memory */
	uint32_t wide, words;       /* 64-bit and other registers per thread */
	uint32_t registers, locals; /* bytes per thread */
	struct variable_set variables;
	struct shared_live shared;
	uint32_t varying;      /* kept.c: the variables that only some safe points need */
	uint32_t spared;       /* bytes of them that need no saving: see weir_verdict */
	struct variable *kept; /* shared word with what the block needs; NULL: none varies */
};

/* Registers that locate a thread's part of the save. */
struct slot {
	struct reg *base;             /* address of the worker's save */
	struct reg *thread, *rounded; /* thread number; thread count, rounded up to warps */
	struct reg *count;            /* thread count */
};

struct slot save_slot(struct cursor *at, struct saver *saver);
/* The address of this thread's value in an array of @bytes per thread. The array is @offset bytes
 * per thread behind the fixed part. */
struct reg *save_place(struct cursor *at, struct saver *saver, const struct slot *slot,
		       uint32_t offset, uint32_t bytes);
/* The distance from one such array to the next. */
struct reg *save_step(struct cursor *at, struct saver *saver, const struct slot *slot,
		      uint32_t bytes);

/* constants.c: moves what is constant to the kernel's begin. */
void save_find_constants(struct saver *saver);

/* memory.c */
void save_measure_memory(struct saver *saver);
/* Copies to the save or from it; all threads together. */
void save_copy_memory(struct cursor *at, bool saves, struct saver *saver, const struct slot *slot);

/* kept.c: drops variables that need not be saved. */
void kept_find(struct saver *saver);
/* For all threads, when a launch begins; for a thread that leaves. */
void kept_begin(struct cursor *at, struct saver *saver);
void kept_note(struct cursor *at, struct saver *saver, const struct safe_point *point);
/* The set of varying variables that the block saves or has saved; NULL: none varies. */
struct reg *kept_which(struct cursor *at, bool saves, struct saver *saver, const struct slot *slot);
/* To the block that is returned if @v is not in the set. It is to be placed; NULL: @v always is. */
struct block *kept_unless(struct cursor *at, struct saver *saver, struct reg *which,
			  const struct variable *v);

/* registers.c, as memory.c; each thread on its own. */
void save_measure_registers(struct saver *saver);
void save_move_registers(struct cursor *at, bool saves, struct saver *saver,
			 const struct slot *slot, const struct alive *alive);
