/* A scheduler (scheduler-world.h) with a model of the GPU: clients that are not stopped, held or
 * blocked and have work share it. Only run() lets time pass. The linker must replace loop_now(),
 * channels_ran() and channels_stays_stopped(). */
#pragma once

#include "scheduler-world.h"

#define SECOND (1000 * MS)

extern struct gpu_model {
	uint64_t ran[WORLD_CLIENTS];     /* ns on the GPU */
	uint64_t enabled[WORLD_CLIENTS]; /* ns */
	uint64_t changes[WORLD_CLIENTS]; /* when a stop or its end takes effect; 0: none is due */
	bool stands[WORLD_CLIENTS];
	bool silent[WORLD_CLIENTS];   /* reports nothing */
	uint64_t busy[WORLD_CLIENTS]; /* ns with work; reported each 5 ms */
	/* Under MPS. 0: 1, and at once. */
	unsigned weights[WORLD_CLIENTS]; /* what they get of the GPU beside each other */
	uint64_t leaves[WORLD_CLIENTS];  /* ns for which launches go on that have begun */
	uint64_t went_on[WORLD_CLIENTS]; /* since when it must not begin another; 0: it may */
	/* ns. 0: launches of 2 ms, reported as they end. */
	uint64_t launch[WORLD_CLIENTS], tells[WORLD_CLIENTS];
} hardware;

int model_set_up(void **state);
/* The scheduler looks when it wants to. */
void run(uint64_t ns);
/* What client @i runs in the next @ns, in ms. */
uint64_t ms_of(unsigned i, uint64_t ns);
/* Limits, rates or levels have changed. */
void change(void);
