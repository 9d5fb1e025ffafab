/* libweir as an application sees it, on the null driver, with an agent that the test plays. Linked
 * against libweir.so by its SONAME, like every CUDA program. */
#pragma once

#include "fake-agent.h"
#include "null-driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CONTEXT(n)   ((CUcontext)(uintptr_t)(0x10000 + 0x100 * (n)))
#define STREAM(n, s) ((CUstream)(uintptr_t)(0x10000 + 0x100 * (n) + 8 * (s)))
#define KERNEL(n)    ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))

extern struct fake_agent agent;
extern struct null_driver *driver; /* NULL before guest_driver() */

void launch_on(CUstream stream, unsigned kernel);
/* A context that libweir does not know yet. Each is one of its own. */
unsigned context_new(void);
/* One whose first launch has been welcomed at @level. */
unsigned welcomed(uint8_t level, uint8_t bit);
/* Ends it, and the connection. */
void gone(unsigned n);
/* Teaches the kernel a time: its first launches are sampled. */
void learn(unsigned n, unsigned kernel, uint64_t ns);

/* Waits @us, and until the worker has seen what was set before: it has slept three times since. For
 * a worker that no driver call keeps. */
void settle(unsigned us);

/* The driver behind libweir, once the program has called it. */
void guest_driver(void);

/* For groups: an agent; and with the driver called, too. */
int guest_begin(void **state);
int guest_begin_called(void **state);
int guest_finish(void **state);
