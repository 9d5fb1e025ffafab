/* What hooks that allocate do around the driver's call. */
#pragma once

#include "memory/memory-ledger.h"
#include "memory/memory-table.h"
#include "memory/memory-wait.h"

/* An allocation that is about to be made. */
struct memory_claim {
	struct ledger
		*ledger; /* NULL: of each context, if it has a size; otherwise nothing counts */
	CUcontext context;
	uint64_t size;
};

/* In the current context. False: the hook returns CUDA_ERROR_OUT_OF_MEMORY. */
bool memory_claim(struct memory_claim *claim, uint64_t size);
/* After the call: records the allocation under @key, or gives it back. Returns @result. */
CUresult memory_made(const struct memory_claim *claim, CUresult result, enum record_kind kind,
		     uint64_t key);
/* After a release, whose hook has taken the record out of the table before the driver could give
 * out the same key again: gives back what was charged, or puts the record back. Returns @result. */
CUresult memory_released(const struct record *record, CUresult result);

/* Hooks with that around the call. @claims: fills in `claim`; @key: of what is released; @after: at
 * the end. */
#define MEMORY_ALLOCATES(function, kind, bytes, parameters, arguments) \
	MEMORY_CLAIMS(function, kind, memory_claim(&claim, bytes), parameters, arguments, )
#define MEMORY_CLAIMS(function, kind, claims, parameters, arguments, after)               \
	EXPORT CUresult function parameters                                               \
	{                                                                                 \
		struct memory_claim claim;                                                \
		struct memory_wait wait = {0};                                            \
		CUresult result;                                                          \
                                                                                          \
		if (!(claims))                                                            \
			return CUDA_ERROR_OUT_OF_MEMORY;                                  \
		do                                                                        \
			result = real(function) arguments;                                \
		while (memory_wait(&wait, claim.ledger, claim.size, result));             \
		result = memory_made(&claim, result, kind, result ? 0 : (uintptr_t)*out); \
		after;                                                                    \
		return result;                                                            \
	}
#define MEMORY_RELEASES(function, kind, key, parameters, arguments, after) \
	EXPORT CUresult function parameters                                \
	{                                                                  \
		struct record record;                                      \
		bool known = table_take(kind, (uintptr_t)(key), &record);  \
                                                                           \
		driver_ready();                                            \
		driver_waits();                                            \
		CUresult result = real(function) arguments;                \
		if (known)                                                 \
			memory_released(&record, result);                  \
		after;                                                     \
		return result;                                             \
	}

/* The same for the variables of a module or a library, and for a graph that is instantiated. */
bool memory_claim_code(struct memory_claim *claim, bool library, uint64_t size);
bool memory_claim_graph(struct memory_claim *claim, CUgraph graph);

/* Before the context ends: takes the records of its memory off its handle. They stay charged, and
 * can be released, under the returned name. */
CUcontext memory_take_context(CUcontext context);
/* Afterwards, with that name: the context has ended, and its memory with it; */
void memory_forget_context(CUcontext taken);
/* or it has not. */
void memory_put_back(CUcontext taken, CUcontext context);
/* In a forked child. */
void memory_forget(void);
/* Its parts in memory-map.c and memory-limit.c. */
void memory_map_forget(void);
void memory_limit_forget(void);

/* After a synchronisation: pools may have given memory back. */
static inline void memory_look(void)
{
	if (load_relaxed(&ledger_pools))
		ledger_settle_here();
}
