/* How long a launch will take: the mean of its kernel in this geometry; or, where that is not known
 * or varies with the arguments, the prediction of a regression over the kernel's sizes.
 *
 * Each sampled kernel has a model, in a table of fixed size whose entries are overwritten. The
 * worker makes models; the launch path reads them without a lock and ignores a torn snapshot. The
 * driver tells where arguments lie, but only for valid handles. So a model's arguments are read
 * only while no code has been unloaded since. */
#pragma once

#include "measure/kernel.h"
#include "measure/predict-ridge.h"

/* The arguments that a model uses. */
struct arguments {
	bool known;
	uint64_t scalars[RIDGE_SCALARS];
};

/* By the regression; @mean if there is none. */
uint64_t predict_by_sizes(const struct kernel_call *call, uint64_t mean);

/* Launch path: ns; 0: not known. */
static inline uint64_t predict(const struct kernel_time *kernel, const struct kernel_call *call)
{
	uint64_t mean = kernel_mean(kernel);

	return mean && !kernel_varies(kernel) ? mean : predict_by_sizes(call, mean);
}
/* Launch path, for a sample. */
struct arguments predict_arguments(const struct kernel_call *call);

/* Worker: fits a model again that has learned something; one at a time, every 10 ms at most. */
void predict_work(uint64_t now);
/* Any thread: some models are to be fitted. */
bool predict_pending(void);

/* Worker, with the context current: learns that a launch took @ns. @unloads: kernel_unloads()
 * before it. Returns what the regression predicted; 0: nothing. */
uint64_t predict_learn(const struct geometry *geometry, const struct arguments *arguments,
		       uint32_t unloads, uint64_t ns);
