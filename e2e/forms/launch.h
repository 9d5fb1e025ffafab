/* A launch of a kernel on the interpreter, which runs a block from start to end on the calling
 * thread. */
#pragma once

#include "problem.h"

#include <stdbool.h>
#include <stddef.h>

#define SMS            4
#define PARAMETERS_MAX 256

/* A launch or a continuation. */
struct launch {
	struct run *run;
	const struct ptx_kernel *kernel;
	struct ptx_launch ptx;
	uint8_t parameters[PARAMETERS_MAX];
	_Atomic uint64_t next; /* next block to run */
	_Atomic int error;
	struct ptx_error why;
};

/* A launch of the problem's kernel in @form. @hidden: the last parameter of the form. */
void launch_init(struct launch *launch, struct run *run, enum weir_form form, uint32_t *out,
		 const void *hidden, size_t hidden_size);

/* Runs the blocks that nobody has begun; on several threads at a time, too. @data: the launch. */
void *launch_blocks(void *data);

/* Whether all blocks ended well; else the run's message says so of @what. */
bool launch_is_good(const struct launch *launch, const char *what);

/* Zeroed: the memory that the kernel writes, @out or a variable. */
uint32_t *launch_results(struct run *run, uint32_t *out);
/* Whether @out is what the native kernel left; else the run's message says so of @what. */
bool launch_agrees(struct run *run, const char *what, const uint32_t *out);

static inline uint64_t blocks_of(struct ptx_dim grid)
{
	return (uint64_t)grid.x * grid.y * grid.z;
}

/* What stands at @offset of the object of a problem that is detached. */
static inline const void *in_object(const struct run *run, uint32_t offset)
{
	return (const char *)run->object + offset;
}
