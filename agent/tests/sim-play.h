/* Runs a trace on the simulated GPU. */
#pragma once

#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

/* Under MPS, with an agent that sees all at once. */
struct sim_options options_for(const char *policy);
/* @text has an `end`. The caller frees the result. */
struct sim_result play(const char *text, struct sim_options options);
