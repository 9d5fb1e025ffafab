/* The times of kernels: one entry for each function and geometry, in a table of fixed size whose
 * entries are overwritten. README.md says what counts. */
#pragma once

#include "shim/call.h"

#include <assert.h>

struct tuned_kernel;

/* ns: the events around a launch, 3.3 us on an H200, disturb shorter kernels. */
#define KERNEL_FELT (300 * NS_PER_US)

/* One cache line: between two launches the driver has used all of the first-level cache. */
struct kernel_time {
	_Alignas(64) _Atomic uint64_t key;
	_Atomic uint64_t mean;                /* ns; 0: not known */
	_Atomic(struct tuned_kernel *) tuned; /* NULL: not tuned */
	_Atomic uint64_t eviction;            /* ns of GPU time, running mean; 0: not known */
	_Atomic uint64_t least;               /* ns, the least of `longer` samples */
	_Atomic uint32_t longer; /* latest samples in a row that were longer and not believed */
	_Atomic uint32_t launches, samples;
	_Atomic int varies; /* the regression predicts better than the mean */
	/* Variances of relative errors: of the mean, and of the regression (predict.h). */
	_Atomic float variance, sizes_variance;
};
static_assert(sizeof(struct kernel_time) == 64, "one cache line");

/* How often code was unloaded, alone or with its context. If this has not changed since before a
 * launch, the handle that was launched is still valid for the worker. */
extern _Atomic uint32_t code_unloads;
static inline uint32_t kernel_unloads(void)
{
	return atomic_load(&code_unloads);
}

/* Never 0. */
uint64_t kernel_key(const struct geometry *geometry);

/* The entry for @key; never NULL. Another thread may overwrite it at any time, so its values are
 * hints. */
struct kernel_time *kernel_find(uint64_t key);

/* ns; 0: not known. */
static inline uint64_t kernel_mean(const struct kernel_time *kernel)
{
	return load_relaxed(&kernel->mean);
}

/* A launch of it has ended. */
static inline bool kernel_is_measured(const struct kernel_time *kernel)
{
	return load_relaxed(&kernel->samples) != 0;
}

static inline bool kernel_varies(const struct kernel_time *kernel)
{
	return load_relaxed(&kernel->varies);
}

/* Counts a launch and says whether to sample it: the first few, then one in many, more of those
 * that vary and of those that may leave (@leaves) at unknown cost. */
bool kernel_wants_sample(struct kernel_time *kernel, bool leaves);

/* The latest samples took twice the mean while others may have run: because of these, or the mean
 * is wrong. */
static inline bool kernel_is_doubted(const struct kernel_time *kernel)
{
	return load_relaxed(&kernel->longer) &&
	       load_relaxed(&kernel->least) >= 2 * kernel_mean(kernel);
}

/* Worker: earlier processes have measured @ns, so fewer of the first launches are sampled. Until
 * one is, this is the kernel's mean: launches of unknown time have a gate each. */
void kernel_is_profiled(struct kernel_time *kernel, uint64_t key, uint64_t ns);

/* Worker: an eviction cost @ns. */
void kernel_learn_eviction(struct kernel_time *kernel, uint64_t key, uint64_t ns);

/* A launch takes at least @ns. A measured mean holds up to twice its time. */
void kernel_at_least(struct kernel_time *kernel, uint64_t key, uint64_t ns);

/* The relative error of a prediction; at most 10. */
double kernel_error(uint64_t predicted, uint64_t ns);

/* What may have lengthened a sample. */
enum kernel_crowd {
	KERNEL_ALONE,
	/* Others: a time above the mean counts only after several in a row, and then the least of
	 * them. */
	KERNEL_CROWDED,
	/* The hardware stops the client in the middle of kernels: of one that is longer than a
	 * slice all samples are too long. Or the launch had fewer workers than fit. So a time above
	 * the mean never counts. */
	KERNEL_SLICED,
};

/* Worker: the time to learn from a sample of @ns; 0: none. */
uint64_t kernel_believe(struct kernel_time *kernel, uint64_t key, uint64_t ns,
			enum kernel_crowd crowd);

/* Worker: takes such a time into the mean, unless the entry was overwritten. @by_sizes: the
 * regression's prediction; 0: none. */
void kernel_learn(struct kernel_time *kernel, uint64_t key, uint64_t ns, uint64_t by_sizes,
		  enum kernel_crowd crowd);
