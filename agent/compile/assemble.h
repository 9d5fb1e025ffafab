/* Compiles PTX to machine code with NVIDIA's compiler library. */
#pragma once

#include <stddef.h>

#include "weir/transform.h"

/* The type that struct weir_object_request wants. */
int assemble(void *data, const char *ptx, size_t len, unsigned sm, void **image, size_t *image_len,
	     struct weir_error *error);
