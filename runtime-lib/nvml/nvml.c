/* The real NVML and its functions. Nothing happens before the first call. */
#include "nvml/nvml.h"

#include "shim/search.h"

#include <pthread.h>

#define NVML_NAME "libnvidia-ml.so.1"

static const char *const function_names[NVML_IDS] = {
#define HOOK(function) [NVML_##function] = #function,
#define USE(function)  [NVML_##function] = #function,
#include "nvml-hooks.def"
#undef HOOK
#undef USE
};
void *nvml_functions[NVML_IDS];

static nvmlReturn_t function_missing(void)
{
	return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t library_missing(void)
{
	return NVML_ERROR_LIBRARY_NOT_FOUND;
}

/* NVML lies beside the driver that WEIR_DRIVER names. */
static bool find(char *path)
{
	const char *driver = getenv("WEIR_DRIVER");

	return (driver && search_beside(path, NVML_NAME, driver)) ||
	       search_library(path, NVML_NAME);
}

static void opened(void *library)
{
	for (size_t i = 0; i < NVML_IDS; i++)
		nvml_functions[i] = shim_function(function_names[i]);
	if (library)
		pthread_atfork(NULL, NULL, nvml_memory_forget);
}

static const char *const forwarded_names[] = {
#include "nvml-forward-names.inc"
};
const struct shim shim = {
	.name = "NVML",
	.find = find,
	.opened = opened,
	.function_missing = (void *)function_missing,
	.library_missing = (void *)library_missing,
	.forwarded = forwarded_names,
};

bool nvml_ready(void)
{
	return shim_ready();
}

/* The only function that does not return a number. */
EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
	return nvml_ready() ? real(nvmlErrorString)(result) : "NVML Shared Library Not Found";
}
