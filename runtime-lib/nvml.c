/* The real NVML, found behind our own SONAME, and its functions. Nothing happens before the first
 * call. */
#include "nvml.h"

#include "late.h"
#include "search.h"

#include "weir/base.h"
#include "weir/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NVML_NAME "libnvidia-ml.so.1"

static const char *const function_names[NVML_IDS] = {
#define HOOK(function) [NVML_##function] = #function,
#define USE(function)  [NVML_##function] = #function,
#include "nvml-hooks.def"
#undef HOOK
#undef USE
};
void *nvml_functions[NVML_IDS];

static const char *const forwarded_names[] = {
#include "nvml-forward-names.inc"
};
extern void *forward_slots[countof(forwarded_names)];

static void *library;      /* from dlopen() */
static _Atomic int loaded; /* 0: not tried, 1: ready, -1: there is none */

static nvmlReturn_t function_missing(void)
{
	return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t library_missing(void)
{
	return NVML_ERROR_LIBRARY_NOT_FOUND;
}

/* Where we mount the driver it lies beside libcuda.so.1. */
static bool find(char *path)
{
	const char *driver = getenv("WEIR_DRIVER");

	return (driver && search_beside(path, NVML_NAME, driver)) ||
	       search_library(path, NVML_NAME);
}

static void load(void)
{
	char path[PATH_MAX];

	log_init("libweir", LOG_WARNING);
	if (late_bind_loader() && find(path))
		library = late.dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library)
		log_debug("NVML is %s", path);
	else
		log_debug("there is no NVML here");

	void *missing = library ? (void *)function_missing : (void *)library_missing;
	for (size_t i = 0; i < NVML_IDS; i++) {
		void *address = library ? late.dlsym(library, function_names[i]) : NULL;
		nvml_functions[i] = address ? address : missing;
	}
	if (library)
		pthread_atfork(NULL, NULL, nvml_memory_forget);
	atomic_store(&loaded, library ? 1 : -1);
}

bool nvml_ready(void)
{
	static struct once loading;

	int state = atomic_load_explicit(&loaded, memory_order_acquire);
	if (!state) {
		once(&loading, load);
		state = atomic_load(&loaded);
	}
	return state > 0;
}

/* Called by the forwarders' stubs, once for each function that is used. */
void *forward_resolve(size_t index);
void *forward_resolve(size_t index)
{
	void *address = nvml_ready() ? late.dlsym(library, forwarded_names[index]) : NULL;

	if (!address)
		address = library ? (void *)function_missing : (void *)library_missing;
	__atomic_store_n(&forward_slots[index], address, __ATOMIC_RELEASE);
	return address;
}

/* The one that does not answer with a number. */
EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
	return nvml_ready() ? real(nvmlErrorString)(result) : "NVML Shared Library Not Found";
}
