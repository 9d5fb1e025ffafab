/* The file of a COMPILE message (weir/protocol.h), checked by its head and size; and how
 * weir-compile gets it. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

struct request {
	uint32_t sm, forms, registers;
	bool soonest; /* the form that leaves soonest is enough */
	uint64_t name, name_size;
	uint64_t image, image_size;
};

/* Fills @out and returns NULL, or says what is wrong. Name and image lie inside the file of @size
 * bytes; their contents are not checked. */
const char *request_check(struct request *out, const struct weir_compile_file *head, uint64_t size);

/* Descriptors that weir-compile inherits, and its exit status. The result is the object, or one
 * line of text for the client. */
#define REQUEST_FD 3
#define RESULT_FD  4

enum request_exit {
	REQUEST_DONE = 0,
	REQUEST_NO_SANDBOX = 10, /* nothing was read */
	REQUEST_REFUSED = 11,    /* malformed, no PTX in it, no such kernel */
	REQUEST_FAILED = 12,     /* the compiler refuses the kernel */
	REQUEST_NO_MEMORY = 13,
};
