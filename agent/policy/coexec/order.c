#include "policy/coexec/order.h"

#include <string.h>

void coexec_order(const uint64_t *kernels, unsigned n, uint64_t sorted[COEXEC_MOST],
		  unsigned order[COEXEC_MOST])
{
	memset(sorted, 0, COEXEC_MOST * sizeof(*sorted));
	for (unsigned i = 0; i < n; i++) {
		order[i] = 0;
		for (unsigned k = 0; k < n; k++)
			order[i] += k < i ? kernels[k] <= kernels[i] : kernels[k] < kernels[i];
		sorted[order[i]] = kernels[i];
	}
}
