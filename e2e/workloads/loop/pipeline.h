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
};

/* Fills in @numbers and @tensor. @by_loop: an event loop reads the file; else the host does, and a
 * kernel computes. Returns seconds; ends the program when something fails. */
__attribute__((visibility("default"))) double pipeline_run(const struct pipeline *pipeline,
							   int by_loop);
