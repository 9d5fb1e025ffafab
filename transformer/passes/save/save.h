/* A worker's save: what threads that leave a block inside put there, and find in a later launch.
 *
 *	header		serial of the launch, 0: nothing is saved; words of the group (safe.h)
 *	shared memory	each variable
 *	T x 4 bytes	point
 *	T x 8 bytes	registers of 64 bits: all threads' first, all threads' second ...
 *	T x 4 bytes	others, likewise, and ...
 *	T x ...		local memory
 *	dynamic shared memory
 *
 * of T threads rounded up to whole warps, with room for what is alive at the point with most, as
 * threads may have left at different ones. Files save-*.c write the code for one part each, and
 * save.c what stands between them.
 */
#pragma once

#include "passes/pass.h"
#include "passes/safe.h"

#define SAVE_VARIABLES_MAX 64u

/* Variables in shared and local memory, each once. Those without a size all lie in one place: the
 * first with the largest alignment stands for them. */
struct variable_set {
	struct variable *list[SAVE_VARIABLES_MAX];
	unsigned n; /* above SAVE_VARIABLES_MAX: too many, and not all are in the list */
	struct variable *dynamic; /* without a size, or NULL */
};

/* What is alive at a point, by size. */
struct alive {
	struct reg **wide, **whole, **half, **flags;
	unsigned n_wide, n_whole, n_half, n_flags;
	struct reg *unsavable; /* what cannot be saved */
};

struct saver {
	struct rewrite *rewrite;
	struct function *f;
	struct safe *safe;
	struct cfg cfg;
	struct live live;
	struct block *leave_rest, *final;
	struct alive *alive;        /* by point */
	struct block **resume;      /* by point */
	uint32_t fixed;             /* header and shared memory */
	uint32_t wide, words;       /* registers that a thread saves: of 64 bits, others */
	uint32_t registers, locals; /* bytes of a thread */
	struct variable_set variables;
};

/* Registers that say where a thread is. */
struct slot {
	struct reg *base;             /* address of the save */
	struct reg *thread, *rounded; /* number of this thread; of all, rounded up */
	struct reg *count;            /* of all */
};

/* save/place.c */
struct slot save_slot(struct cursor *at, struct saver *saver);
/* The address of this thread's value of @bytes, @offset bytes of each thread behind the fixed part.
 */
struct reg *save_place(struct cursor *at, struct saver *saver, const struct slot *slot,
		       uint32_t offset, uint32_t bytes);
/* What is added to the address for each thread's next. */
struct reg *save_step(struct cursor *at, struct saver *saver, const struct slot *slot,
		      uint32_t bytes);

/* save/memory.c. Measuring is PASS_DONE or PASS_REFUSED, or a negative errno. */
int save_measure_memory(struct saver *saver);
/* To the save, or from it: all threads together. */
void save_copy_memory(struct cursor *at, bool saves, struct saver *saver, const struct slot *slot);

/* save/registers.c, likewise; each thread its own. */
int save_measure_registers(struct saver *saver);
void save_move_registers(struct cursor *at, bool saves, struct saver *saver,
			 const struct slot *slot, const struct alive *alive);
