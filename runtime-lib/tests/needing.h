/* For tests of what demand writes into the pages of lower levels, on the null driver, whose GPU has
 * 4 SMs. */
#pragma once

#include "inside.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define KERNEL         ((CUfunction)(uintptr_t)0x9000)
#define OWN            (1ull << 1) /* context_welcomed()'s bit */
#define NEEDED         1u          /* yield: no more than the launch needs */
#define NEEDING_STREAM 4           /* streams 1 to this are the tests' */

void launch_of(CUfunction kernel, unsigned n, unsigned stream, unsigned blocks);
void launch(unsigned n, unsigned stream, unsigned blocks);

bool is_clear(const struct weir_demand_page *page);
/* Both pages, and what the client says. */
bool all_clear(void);
/* In both pages. */
void assert_shown(uint64_t whole, uint32_t sms);

/* A context at level 2 whose work does not end; what it yields. */
unsigned begin(uint32_t yield);
void finish_work(unsigned n);
void end(unsigned n);
