/* A module of any size: texts of PTX over and over, and generated kernels between them. Names
 * that a text declares outside of bodies differ in each copy.
 */
#pragma once

#include <stddef.h>

struct corpus {
	char *text;
	size_t len;
	unsigned kernels;
};

/* The heads (.version ...) of @texts are left out. Returns -ENOMEM or 0. */
int corpus_make(struct corpus *corpus, const char *const *texts, size_t n, size_t size);
