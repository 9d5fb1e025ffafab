/* For tests that launch workers themselves. */
#pragma once

#include "simcuda/ptx/ptx.h"

#include "weir/transform.h"

#include <unistd.h>

/* Transforms a text and loads the result. Not 0: it failed. */
int load_forms(struct ptx_module **module, const char *text,
	       const struct weir_transform_options *options);

#define LOAD_DEADLINE 30000u /* ms */

/* Fails the test if @condition does not become true. The caller includes cmocka.h. */
#define WAIT(condition)                                          \
	do {                                                     \
		unsigned waited = 0;                             \
		while (!(condition) && waited++ < LOAD_DEADLINE) \
			usleep(1000);                            \
		assert_true(condition);                          \
	} while (0)
