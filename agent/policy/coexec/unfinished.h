/* What searches tried that did not end: one of the kernels was done before. When the same kernels
 * meet again, the search goes on with what is known. A new one takes the place of the one that was
 * not used for longest. Pure. */
#pragma once

#include "policy/coexec/search.h"

#define COEXEC_UNFINISHED 128u

struct coexec_tried {
	uint64_t kernels[COEXEC_MOST]; /* as in a coexec_set; all 0: nothing was tried */
	uint64_t used;                 /* in the order of use */
	unsigned n;
	struct {
		uint8_t workers[COEXEC_MOST];
		float rates[COEXEC_MOST];
	} of[COEXEC_WORKERS];
};

struct coexec_unfinished {
	struct coexec_tried of[COEXEC_UNFINISHED];
	uint64_t uses;
};

/* Keeps what @search has tried of @space for the @n kernels with these numbers. */
void coexec_unfinished_put(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			   unsigned n, const struct coexec_space *space,
			   const struct coexec_search *search);
/* @search has just begun: feeds it with what is known. It may be done then. */
void coexec_unfinished_resume(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			      unsigned n, const struct coexec_space *space,
			      struct coexec_search *search);
/* The search has ended. */
void coexec_unfinished_forget(struct coexec_unfinished *unfinished, const uint64_t *kernels,
			      unsigned n);
/* The highest speed-up that was tried; 0: nothing was. */
double coexec_unfinished_highest(const struct coexec_unfinished *unfinished,
				 const uint64_t *kernels, unsigned n);
