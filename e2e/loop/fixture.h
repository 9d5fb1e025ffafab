/* Shared by the tests of loops: a GPU of one's own, kernels, and memory that they leave results in.
 */
#pragma once

#include <cuda.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/loop.h"

#define OUT_WORDS (64 + (8u << 20) / 8) /* out[64..] are buffers */
#define TEXT_SIZE 1024u

struct fixture {
	CUmodule module;
	CUdeviceptr out, text;
	uint64_t seen[64]; /* out[0..63] after the last run */
	struct weir_loop_stats stats;
	int code;
	char folder[64]; /* for files; removed at the end */
};

extern struct fixture fx;

/* Group set-up and tear-down. */
int fixture_begin(void **state);
int fixture_end(void **state);

/* Text for the kernel, at an offset of its parameter. */
void fixture_text(size_t offset, const char *text);
/* The path of a file in the folder. */
const char *fixture_path(const char *name);

struct weir_loop *fixture_new(const char *kernel, const struct weir_loop_options *options);
/* Runs it with these parameters, takes results and frees it. */
int fixture_finish(struct weir_loop *loop, uint64_t n);
int fixture_run(const char *kernel, const struct weir_loop_options *options, uint64_t n);
