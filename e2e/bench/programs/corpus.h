/* A module of any size: texts of PTX over and over, and generated kernels between them. What a text
 * names outside of bodies has another name each time.
 */
#pragma once

#include <stddef.h>

struct corpus {
	char *text;
	size_t len;
	unsigned kernels;
};

/* @texts: each with a head (.version ...) of its own, which is left out. -ENOMEM, or 0. */
int corpus_make(struct corpus *corpus, const char *const *texts, size_t n, size_t size);
