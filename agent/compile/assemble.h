/* PTX to machine code, by NVIDIA's compiler as a library. */
#pragma once

#include <stddef.h>

#include "weir/transform.h"

/* For struct weir_object_request. */
int assemble(void *data, const char *ptx, size_t len, unsigned sm, void **image, size_t *image_len,
	     struct weir_error *error);
