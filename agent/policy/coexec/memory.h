/* What was found of kernels that ran at the same time, and each kernel's speed alone. A new set
 * takes the place of the one that was not used for longest. Pure. */
#pragma once

#include "policy/coexec/unfinished.h"

#define COEXEC_SETS 512u

#define COEXEC_SPEED_UP_MAX 8.0 /* more than COEXEC_MOST kernels can reach */
#define COEXEC_PARTNERS     1.1 /* speed-up of two kernels that gain by each other, at least */

struct coexec_set {
	uint64_t kernels[COEXEC_MOST]; /* their numbers, in order; 0: no more */
	uint8_t workers[COEXEC_MOST];  /* of the best configuration */
	double speed_up;               /* with it */
	uint64_t used;                 /* in the order of use */
};

struct coexec_memory {
	struct coexec_set sets[COEXEC_SETS];
	uint64_t uses, changes;
	struct coexec_unfinished unfinished; /* not of `changes`, and not saved */
};

/* Whether its numbers are possible, wherever they come from. */
bool coexec_set_is_sane(const struct coexec_set *set);

/* @kernels: the numbers of @n kernels, 1 to COEXEC_MOST, none 0. @workers: in the same order;
 * NULL: not wanted. Returns the speed-up; of one kernel, its speed alone. 0: nothing is known. */
double coexec_memory_find(struct coexec_memory *memory, const uint64_t *kernels, unsigned n,
			  uint8_t *workers);
void coexec_memory_put(struct coexec_memory *memory, const uint64_t *kernels, unsigned n,
		       const uint8_t *workers, double speed_up);
/* All, unfinished searches, too. Returns how many sets there were. */
unsigned coexec_memory_forget(struct coexec_memory *memory);
/* Both kernels gain beside a third one. */
bool coexec_memory_alike(const struct coexec_memory *memory, uint64_t a, uint64_t b);
/* Something is known of the kernel, alone or beside others. */
bool coexec_memory_knows(const struct coexec_memory *memory, uint64_t kernel);
