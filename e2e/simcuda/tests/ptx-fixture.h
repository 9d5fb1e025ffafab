/* Runs PTX texts in tests. */
#pragma once

#include "simcuda/ptx/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define PTX_HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* Loads @text, which must be well formed. */
struct ptx_module *fixture_load(const char *text);
/* Loads a file, all of which must be known. */
struct ptx_module *fixture_load_file(const char *path);
/* All blocks of a grid, one after the other. The first failure, or 0. */
int fixture_run(struct ptx_module *module, const char *kernel, struct ptx_dim grid,
		struct ptx_dim block, uint32_t dynamic_shared, const void *params,
		struct ptx_error *error);
/* The same, and it must succeed. */
void fixture_must_run(struct ptx_module *module, const char *kernel, struct ptx_dim grid,
		      struct ptx_dim block, uint32_t dynamic_shared, const void *params);

/* One block of @threads of the text's kernel `k`. */
int fixture_block(const char *text, uint32_t threads, uint32_t dynamic_shared, const void *params,
		  struct ptx_error *error);
/* The same, and it must succeed, */
void fixture_block_runs(const char *text, uint32_t threads, uint32_t dynamic_shared,
			const void *params);
/* or fault in a line of the text, with @message in what it says. */
void fixture_block_faults(const char *text, uint32_t threads, uint32_t dynamic_shared,
			  const void *params, const char *message);

/* An instruction and its expected result. Registers %h, %r and %d have 16, 32 and 64 bits. Numbers
 * 1 to 4 hold in[0] to in[3], cut to their width; %p1 to %p4 tell whether these are odd. The result
 * is number 0 of the first kind that the text names. */
struct fixture_row {
	const char *text;
	uint64_t in[4];
	uint64_t want;
};
uint64_t fixture_compute(const struct fixture_row *row);
void fixture_check(const struct fixture_row *rows, size_t n);

#define DIM(x, ...) ((struct ptx_dim){x, ##__VA_ARGS__})
