#include "preempt/sm-parts.h"

#include "weir/base.h"

#define WARP          32u
#define WARPS_STEP    4u    /* warps of a block get registers in steps of so many, */
#define REGISTER_STEP 256u  /* and each warp in steps of so many registers */
#define SHARED_OWN    1024u /* bytes that the driver takes of each block's shared memory, */
#define SHARED_STEP   128u  /* and in which it is given out */

static uint64_t up_to(uint64_t n, uint64_t step)
{
	return (n + step - 1) / step * step;
}

static uint64_t attribute(CUfunction function, CUfunction_attribute which)
{
	int value = 0;

	return real(cuFuncGetAttribute)(&value, which, function) == CUDA_SUCCESS && value > 0
		       ? (uint64_t)value
		       : 0;
}

/* An SM of unknown size has room for all. */
static uint32_t part(uint64_t used, CUdevice device, CUdevice_attribute of)
{
	int all = driver_attribute(device, of);
	uint64_t parts = all > 0 ? used * WEIR_SM_PARTS / (uint64_t)all : 0;

	return (uint32_t)larger(smaller(parts, WEIR_SM_PARTS), 1);
}

/* The driver knows more than the rules above: the scarcest resource follows it. */
static void agree(uint32_t out[WEIR_SM_RESOURCES], uint32_t fit)
{
	size_t scarcest = 0;

	for (size_t i = 1; i < WEIR_SM_RESOURCES; i++)
		scarcest = out[i] > out[scarcest] ? i : scarcest;
	for (size_t i = 0; i < WEIR_SM_RESOURCES; i++)
		out[i] = (uint32_t)smaller(out[i], WEIR_SM_PARTS / fit);
	if (WEIR_SM_PARTS / out[scarcest] > fit)
		out[scarcest] = WEIR_SM_PARTS / fit;
}

void sm_parts(CUdevice device, CUfunction function, const struct geometry *geometry, uint32_t fit,
	      uint32_t out[WEIR_SM_RESOURCES])
{
	const unsigned *block = geometry->block;
	uint64_t threads = up_to((uint64_t)block[0] * block[1] * block[2], WARP);
	uint64_t registers =
		up_to(attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS) * WARP, REGISTER_STEP) *
		up_to(threads / WARP, WARPS_STEP);
	uint64_t shared = attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) +
			  geometry->shared + SHARED_OWN;

	out[0] = part(threads, device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	out[1] = part(registers, device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
	out[2] = part(up_to(shared, SHARED_STEP), device,
		      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	out[3] = part(1, device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	agree(out, larger(fit, 1));
}
