/* Text to tensor on the GPU, for programs that bring their own memory: loop-tokens, and PyTorch by
 * libloop-tokens.so. The caller's CUDA context is current. */
#pragma once

#include <stdint.h>

#include "token-job.h"

/* Device memory as in struct token_job; @offsets and the rest belong to the caller. */
struct pipeline {
	const char *path; /* of the text */
	uint32_t documents, dimension, vocabulary_mask;
	uint64_t offsets, vocabulary, table, numbers, tensor;
	uint32_t blocks; /* of the loop; 0: as many as fit */
	uint32_t rounds; /* behind one that is not measured; 0: that one alone */
};

enum pipeline_way {
	PIPELINE_NATIVE,   /* a thread of the host reads the file, and a kernel computes */
	PIPELINE_LOOP,     /* an event loop reads and computes */
	PIPELINE_PARALLEL, /* each processor reads some documents, copies them and launches */
	PIPELINE_LEAVING,  /* the loop leaves again and again */
};

/* Fills in @numbers and @tensor. Returns how long it took in seconds, the median of the rounds;
 * PIPELINE_LEAVING: how long it took to leave, 99 times of 100. Ends the program when something
 * fails. */
__attribute__((visibility("default"))) double pipeline_run(const struct pipeline *pipeline,
							   enum pipeline_way way);
