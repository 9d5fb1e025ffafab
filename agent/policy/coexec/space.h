/* Which numbers of workers of several kernels fit on an SM together (FlexSched, equation 1). Every
 * SM has the same ones. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

#define COEXEC_MOST    4u              /* kernels that run at the same time */
#define COEXEC_WORKERS WEIR_SM_WORKERS /* of all kernels on an SM, at most */

/* A client's latest kernel. What it reports may be a lie: that costs only the client itself, and
 * those that run beside it, who get fewer workers or wait. */
struct coexec_kernel {
	uint64_t number;                   /* the same for the same kernel of a namespace */
	uint32_t parts[WEIR_SM_RESOURCES]; /* of an SM, for a worker. All 0: workers cannot be
					      bounded, and take what the others leave */
};

/* Workers of each kernel on an SM; 0: not bounded. */
struct coexec_configuration {
	uint8_t workers[COEXEC_MOST];
};

/* The configurations between which a search chooses. From each to the next the kernel `gains` gets
 * more workers, and no other kernel does. */
struct coexec_space {
	unsigned n, gains;
	struct coexec_configuration of[COEXEC_WORKERS];
};

bool coexec_is_bounded(const struct coexec_kernel *kernel);
/* How many workers of kernel @i of @n fit on an SM beside those of the others in @beside. */
unsigned coexec_room(const struct coexec_kernel *kernels, unsigned n,
		     const struct coexec_configuration *beside, unsigned i);
/* Two kernels: all configurations that leave no room for another worker. */
void coexec_space_pair(struct coexec_space *out, const struct coexec_kernel kernels[2]);
/* Kernel @n - 1 joins the others, which have @before. It first takes the room that is left, then
 * workers of the kernels that take most of an SM. Each of them keeps at least one. */
void coexec_space_join(struct coexec_space *out, const struct coexec_kernel *kernels, unsigned n,
		       const struct coexec_configuration *before);
