/* How long a launch will take: what its kernel took in this geometry, or, where that is not known
 * or varies with the arguments, what a regression over the kernel's sizes says (predict-ridge.h).
 *
 * A model for each kernel that was sampled, in a table of fixed size that forgets by being
 * overwritten. The worker makes models; the launch path reads them without a lock: a snapshot that
 * was torn counts as none. Where the kernel's arguments lie the driver says, of handles that are
 * ones, so a model's arguments are only looked at while no code was unloaded since. */
#pragma once

#include "measure/kernel.h"
#include "measure/predict-ridge.h"

/* The arguments that a model looks at; `known` is false when where they lie is not. */
struct arguments {
	bool known;
	uint64_t scalars[RIDGE_SCALARS];
};

/* Launch path: ns; 0: not known. */
uint64_t predict(const struct kernel_time *kernel, const struct kernel_call *call);
/* Launch path, for a sample. */
struct arguments predict_arguments(const struct kernel_call *call);

/* Worker: makes a model anew that has learned something; one at a time, and not all the time. */
void predict_work(uint64_t now);
/* Any thread: some have not been made anew. */
bool predict_pending(void);

/* Worker, with the context current: a launch took so long, nothing else being in that time. What
 * was predicted, by the regression for this size; 0: nothing. */
uint64_t predict_learn(const struct geometry *geometry, const struct arguments *arguments,
		       uint32_t unloads, uint64_t ns);
