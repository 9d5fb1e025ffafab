/* Every function of cuda.h as a weak symbol that answers "not supported"; functions that the driver
 * defines replace it. cuda.h is not included, because its prototypes differ from the stubs'. */

enum { NOT_SUPPORTED = 801 }; /* CUDA_ERROR_NOT_SUPPORTED */

int sim_unsupported(void);
int sim_unsupported(void)
{
	return NOT_SUPPORTED;
}

void *sim_unsupported_address(void);
void *sim_unsupported_address(void)
{
	return (void *)sim_unsupported;
}

#define STUB(name) int name(void) __attribute__((weak, alias("sim_unsupported")));
#include "simcuda/stubs.inc"
