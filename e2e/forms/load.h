/* For tests that launch workers themselves. */
#pragma once

#include "simcuda/ptx/ptx.h"

#include "weir/transform.h"

/* Transforms a text and loads the result. Not 0: it failed. */
int load_forms(struct ptx_module **module, const char *text,
	       const struct weir_transform_options *options);
