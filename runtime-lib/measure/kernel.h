/* What is known about the time of kernels: one entry for each function and geometry, in a table of
 * fixed size that forgets by being overwritten. */
#pragma once

#include "shim/call.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tuned_kernel;

/* ns: the events around a launch, 3.3 us on an H200, disturb shorter kernels. */
#define KERNEL_FELT 300000u

struct kernel_time {
	_Atomic uint64_t key;
	_Atomic uint64_t mean; /* ns; 0: not known */
	/* Of errors relative to what was measured: the mean's, and those of the regression over all
	 * sizes of the kernel (predict.h). */
	_Atomic double variance, sizes_variance;
	_Atomic uint32_t samples;
	_Atomic uint32_t longer; /* of the last ones, in a row, among others and not believed */
	_Atomic uint64_t least;  /* ns, of these */
	_Atomic uint32_t launches;
	_Atomic uint64_t eviction; /* ns of GPU time that one costs, running mean; 0: not known */
	_Atomic int varies;        /* with more than the geometry: the regression says it better */
	_Atomic(struct tuned_kernel *) tuned; /* NULL: runs as it is (tuning.h) */
};

/* How often code was unloaded, alone or with its context. If this has not changed since before a
 * launch, the handle that was launched is still valid for the worker. */
extern _Atomic uint32_t code_unloads;
static inline uint32_t kernel_unloads(void)
{
	return atomic_load(&code_unloads);
}

/* Never 0. */
uint64_t kernel_key(const struct geometry *geometry);

/* The entry for @key; never NULL. Another thread may give it to another kernel at any time, so its
 * values are hints. */
struct kernel_time *kernel_find(uint64_t key);

/* Of what was measured, 0: not known. */
static inline uint64_t kernel_mean(const struct kernel_time *kernel)
{
	return atomic_load_explicit(&kernel->mean, memory_order_relaxed);
}

static inline bool kernel_varies(const struct kernel_time *kernel)
{
	return atomic_load_explicit(&kernel->varies, memory_order_relaxed);
}

/* Counts a launch and says whether it should be sampled: the first few, then one in many, in
 * very many of short ones, or in some of those that vary, or may leave (@leaves) while nobody knows
 * what that costs; and each one after one that took twice as long as is known, and was among
 * others.
 */
bool kernel_wants_sample(struct kernel_time *kernel, bool leaves);

/* Worker: an eviction cost so much. */
void kernel_learn_eviction(struct kernel_time *kernel, uint64_t key, uint64_t ns);

/* A launch takes that long at least. What was measured holds up to twice its time. */
void kernel_at_least(struct kernel_time *kernel, uint64_t key, uint64_t ns);

/* Of a prediction, relative to what was measured; at most 10. */
double kernel_error(uint64_t predicted, uint64_t ns);

/* Worker: what a measured time says, ns; 0: nothing. @crowded: others may have run meanwhile, so
 * longer times than the mean say something only if none is shorter for a while, and then the least
 * of them does. */
uint64_t kernel_believe(struct kernel_time *kernel, uint64_t key, uint64_t ns, bool crowded);

/* Worker: takes such a time into the mean, unless the entry is now another kernel's. @by_sizes:
 * what the regression said; 0: nothing. */
void kernel_learn(struct kernel_time *kernel, uint64_t key, uint64_t ns, uint64_t by_sizes,
		  bool crowded);
