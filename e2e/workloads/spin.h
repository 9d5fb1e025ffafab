/* Kernels of any length with a known result. Each launch advances every thread's word by
 * @iterations steps of a generator, and the host computes the expected word. A launch that was
 * lost, repeated or started too early shows. */
#pragma once

#include "workload.h"

extern const char spin_ptx[];

struct spin {
	CUfunction kernel;
	CUdeviceptr state;
	uint32_t blocks, threads;
	uint32_t iterations; /* of one launch */
	uint32_t period;     /* spin_exchange: a divisor of iterations; 0: spin */
	uint64_t launches;
};

void spin_init(struct spin *spin, const struct workload *workload, uint32_t blocks,
	       uint32_t threads, uint32_t iterations);
/* Has threads hand their words on after each @period iterations, through barriers (spin.cu). */
void spin_exchange(struct spin *spin, const struct workload *workload, uint32_t period);
size_t spin_shared(const struct spin *spin); /* dynamic shared memory of a block */
void spin_launch(struct spin *spin, CUstream stream);
/* Waits for the context, then fails the program if any word is wrong. */
void spin_verify(const struct spin *spin);
void spin_deinit(struct spin *spin);

/* Iterations for a launch of @us on an idle GPU; leaves spin->iterations as it was. */
uint32_t spin_calibrate(struct spin *spin, double us);

/* @x after @steps steps. */
uint32_t spin_jump(uint32_t x, uint64_t steps);
/* What word @i starts with. */
uint32_t spin_start(uint32_t i);
