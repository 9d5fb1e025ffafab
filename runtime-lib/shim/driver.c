#include "shim/driver.h"

#include "shim/weak-libc.h"
#include "shim/search.h"

#include "weir/log.h"

#define DRIVER_NAME "libcuda.so.1"

struct hook driver_hooks[HOOKS] = {
#define HOOK(function) [HOOK_##function] = {.name = #function, .replacement = (void *)(function)},
#define USE(function)  [HOOK_##function] = {.name = #function},
#include "hooks.def"
#undef HOOK
#undef USE
};

/* For a function that this driver does not have. */
static CUresult function_missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult driver_missing(void)
{
	return CUDA_ERROR_NO_DEVICE;
}

bool driver_find(char *path)
{
	const char *given = getenv("WEIR_DRIVER");

	if (given && given[0] == '/') {
		if (search_given(path, given))
			return true;
		log_warning("WEIR_DRIVER=%s is no driver, searching", given);
	}
	return search_library(path, DRIVER_NAME);
}

static void opened(void *driver)
{
	if (driver)
		weak_libc_bind_threads(driver);
	for (size_t i = 0; i < HOOKS; i++)
		driver_hooks[i].real = shim_function(driver_hooks[i].name);
}

static const char *const forwarded_names[] = {
#include "forward-names.inc"
};
const struct shim shim = {
	.name = "CUDA driver",
	.find = driver_find,
	.opened = opened,
	.function_missing = (void *)function_missing,
	.library_missing = (void *)driver_missing,
	.forwarded = forwarded_names,
};

int driver_attribute(CUdevice device, CUdevice_attribute attribute)
{
	int value = 0;

	return real(cuDeviceGetAttribute)(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

unsigned driver_capability(CUdevice device)
{
	int major = driver_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = driver_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

	return (unsigned)(10 * major + minor);
}

_Atomic(driver_wait_function *) driver_before_wait;

CUcontext driver_context(void)
{
	CUcontext context = NULL;

	return real(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : NULL;
}

void *driver_swap(void *address)
{
	for (size_t i = 0; i < HOOKS; i++) {
		if (driver_hooks[i].replacement && driver_hooks[i].real == address)
			return driver_hooks[i].replacement;
	}
	return address;
}
