/* Kernels that have forms, for tests of who gets which: the test plays the compile service and the
 * GPU (inside.h). */
#pragma once

#include "inside.h"

#include "preempt/tuning.h"
#include "launch/preempt.h"

#define KERNEL(n)  ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))
#define FORM(form) ((CUfunction)(uintptr_t)(NULL_FORM + 0x10 * (form)))
#define BLOCKS     1000u
#define AT_ONCE    (NULL_SMS * NULL_OCCUPANCY) /* blocks on the GPU, of whatever kernel */

/* The program's parameters: a pointer and, behind a hole, a double. */
extern void *params[3];
/* Addresses that a form is told of, behind the hidden parameters. */
extern const uint64_t symbols[2];

/* What the compile service answers for a kernel that can have these forms (1 << WEIR_SLICED …). */
struct rewritten in_forms(unsigned forms);

/* A new context, current, of which others are above; its number. */
unsigned welcomed(uint8_t level);
void gone(unsigned n);

/* A kernel of @ns that the compile service has in these forms. */
CUfunction kernel_of(uint64_t ns, const struct rewritten *rewritten);
void launch_call(unsigned n, CUfunction kernel, unsigned blocks);
/* Launches until the kernel's choice is made. False: it never is. */
bool settles(unsigned n, CUfunction kernel, unsigned blocks);
/* What the driver is asked to do for one launch more. */
size_t ops_of(unsigned n, CUfunction kernel, unsigned blocks);
/* The GPU, at once: every launch in flight is finished after so many evictions. */
void land(unsigned evictions);

bool is_form(const struct null_op *op);
const struct weir_persistent *hidden_of(const struct null_op *op);
/* Launches in forms, of what was put into streams. */
unsigned in_form(void);

/* The choice that was made for a kernel; NULL: none yet. */
const struct tuned_kernel *tuned_for(CUfunction kernel);
bool is_tried(CUfunction kernel);
/* How many of so many launches are in a form. */
unsigned forms_of(unsigned n, CUfunction kernel, unsigned count);

/* Somebody above wanted the GPU just now. */
void somebody_waits(unsigned n);
