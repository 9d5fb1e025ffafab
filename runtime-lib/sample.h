/* Samples of kernel times: a pair of events around a launch now and then, read later by the worker,
 * so that the application is never synchronised. */
#pragma once

#include "driver.h"
#include "kernel.h"

#include <stdatomic.h>
#include <stdint.h>

#define SAMPLES 32

struct sample {
	CUevent start, end;
	struct kernel_time *kernel;
	uint64_t key;
};

struct sampler {
	_Atomic uint32_t free;  /* bit i: samples[i] can be taken */
	_Atomic uint32_t armed; /* bit i: both events are recorded, to be read */
	struct sample samples[SAMPLES];
};

/* With the context current. Where the driver gives no events there are no samples. */
void sampler_init(struct sampler *sampler);

/* Before a launch that kernel_wants_sample(): records the start, or NULL if none is free or it
 * fails. */
struct sample *sample_begin(struct sampler *sampler, struct kernel_time *kernel, uint64_t key,
			    CUstream stream);
/* After it. @launched: false when the launch failed, the sample is given back. */
void sample_end(struct sampler *sampler, struct sample *sample, CUstream stream, bool launched);

/* Worker: reads those that are complete. True: some are still open. */
bool sampler_read(struct sampler *sampler);
