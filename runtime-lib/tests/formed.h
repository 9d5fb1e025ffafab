/* Kernels with forms. The test plays the compile service and the GPU (inside.h). */
#pragma once

#include "inside.h"

#include "preempt/tuning.h"
#include "launch/preempt.h"

#define KERNEL(n)  ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))
#define FORM(form) ((CUfunction)(uintptr_t)(NULL_FORM + 0x10 * (form)))
#define BLOCKS     1000u
#define AT_ONCE    (NULL_SMS * NULL_OCCUPANCY) /* blocks of any kernel on the GPU */

/* The program's parameters: a pointer, an int and, aligned, a double. */
extern void *params[3];
/* Addresses behind the hidden parameters. */
extern const uint64_t symbols[2];

/* The compile service's answer for a kernel with these forms (1 << WEIR_SLICED …). */
struct rewritten in_forms(unsigned forms);

/* Makes a new context with higher-level clients current. Returns its number. */
unsigned welcomed(uint8_t level);
void gone(unsigned n);

/* A kernel of @ns in these forms. */
CUfunction kernel_of(uint64_t ns, const struct rewritten *rewritten);
void launch_call(unsigned n, CUfunction kernel, unsigned blocks);
/* Launches until the kernel is settled. False: it never is. */
bool settles(unsigned n, CUfunction kernel, unsigned blocks);
/* How many driver calls one more launch makes. */
size_t ops_of(unsigned n, CUfunction kernel, unsigned blocks);
/* The GPU finishes every launch in flight, each after @evictions. */
void land(unsigned evictions);
/* So many blocks of resumable kernels were drained (upper half) and saved since the beginning. */
void land_blocks(unsigned evictions, uint64_t blocks);

bool is_form(const struct null_op *op);
const struct weir_persistent *hidden_of(const struct null_op *op);
/* Launches in forms among the recorded driver calls. */
unsigned in_form(void);

/* A kernel's record; NULL: not tuned. */
const struct tuned_kernel *tuned_for(CUfunction kernel);
bool is_tried(CUfunction kernel);
/* How many of @count launches are in a form. */
unsigned forms_of(unsigned n, CUfunction kernel, unsigned count);

/* A higher-level client shows demand for a moment. */
void somebody_waits(unsigned n);
/* What it runs in while these wait. */
const struct launch_config *config_in_use(const struct tuned_kernel *tuned, enum waiting waiting);
