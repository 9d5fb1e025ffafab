/* For tests of hints (weir_expect()), on the null driver. */
#pragma once

#include "gates/expect.h"

#include "inside.h"

#define KERNEL ((CUfunction)(uintptr_t)0x9000)

extern struct expecting *expecting; /* of the last context; */
extern unsigned current;            /* its number, for calls_that_wait */

void launch(unsigned n, unsigned stream);
bool shown(void); /* demand */
void finish_work(unsigned n);
/* Of WEIR_EXPECT. */
void use(const char *name);

/* A client of @level whose pages tell of @below clients at lower levels; the context's number. */
unsigned context(uint8_t level, unsigned below);
void gone(unsigned n);
/* A client whose first hint has made all ready, and whose GPU has done what that put. */
unsigned context_ready(void);
/* A hint that puts a kernel into the stream, and the worker does not let it go. */
void hint(CUstream stream);

/* Calls that wait for what is in the GPU, or put something into it. */
extern void (*const calls_that_wait[])(void);
extern const size_t n_calls_that_wait;
void synchronize_stream(void);
void synchronize_context(void);
