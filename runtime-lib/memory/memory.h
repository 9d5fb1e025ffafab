/* Hooks that allocate: what each of them does around the driver's call. */
#pragma once

#include "memory/memory-ledger.h"
#include "memory/memory-table.h"

/* An allocation that is about to be made. */
struct memory_claim {
	struct ledger *ledger; /* NULL: none, the driver will say what is wrong */
	CUcontext context;
	uint64_t size;
};

/* In the current context. False: CUDA_ERROR_OUT_OF_MEMORY. */
bool memory_claim(struct memory_claim *claim, uint64_t size);
/* What came of it: recorded under @key, or given back. Returns @result. */
CUresult memory_made(const struct memory_claim *claim, CUresult result, enum record_kind kind,
		     uint64_t key);
/* After a release, whose hook has taken the record out of the table before the driver could give
 * out the same key again: gives back what was charged, or puts the record back. Returns @result. */
CUresult memory_released(const struct record *record, CUresult result);

/* The context goes, and all memory that was allocated in it. */
void memory_forget_context(CUcontext context);
/* In a forked child. */
void memory_forget(void);
/* The part of memory-map.c in that. */
void memory_map_forget(void);

/* Work has ended: pools may have given memory back. */
static inline void memory_look(void)
{
	if (atomic_load_explicit(&ledger_pools, memory_order_relaxed))
		ledger_settle_here();
}
