/* Loads a hostile module and runs one block of each of its kernels for a bounded time. Only
 * addresses in the parameters' buffer are allowed. */
#include "simcuda/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 4

static uint64_t memory[512];

static bool is_ours(uintptr_t address, size_t size)
{
	return address >= (uintptr_t)memory && size <= sizeof(memory) &&
	       address - (uintptr_t)memory <= sizeof(memory) - size;
}

/* Each parameter that is a pointer in size points to our memory. */
static void *make_params(const struct ptx_kernel *kernel)
{
	size_t bytes = ptx_kernel_param_bytes(kernel);
	char *params = calloc(1, bytes ? bytes : 1);
	uint64_t address = (uintptr_t)memory;

	for (size_t k = 0; params && k < ptx_kernel_param_count(kernel); k++) {
		struct ptx_param param = ptx_kernel_param(kernel, k);
		if (param.size == sizeof(address))
			memcpy(params + param.offset, &address, sizeof(address));
		else
			memset(params + param.offset, 3, param.size);
	}
	return params;
}

static void run(struct ptx_kernel *kernel)
{
	struct ptx_launch launch = {
		.grid = {2, 1, 1},
		.block = {ptx_kernel_max_threads(kernel) < 40 ? ptx_kernel_max_threads(kernel) : 40,
			  1, 1},
		.dynamic_shared = 64,
		.params = make_params(kernel),
		.max_instructions = 2000,
	};
	struct ptx_error error;

	if (launch.params && ptx_kernel_local_bytes(kernel) < 100000)
		ptx_run_block(kernel, &launch, 1, 0, NULL, &error, NULL);
	free((void *)launch.params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptx_module *module;
	struct ptx_kernel *kernel;
	struct ptx_error error;

	ptx_set_address_check(is_ours);
	if (ptx_module_load(&module, (const char *)data, size, &error))
		return 0;
	for (size_t k = 0; k < KERNELS_MAX && (kernel = ptx_module_kernel_at(module, k)); k++)
		run(kernel);
	ptx_module_free(module);
	return 0;
}
