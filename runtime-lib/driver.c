/* The real driver, found behind our own SONAME, and its functions. */
#include "driver.h"

#include "late.h"
#include "search.h"

#include "weir/base.h"
#include "weir/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#define DRIVER_NAME "libcuda.so.1"

struct hook driver_hooks[HOOKS] = {
#define HOOK(function) [HOOK_##function] = {.name = #function, .replacement = (void *)(function)},
#define USE(function)  [HOOK_##function] = {.name = #function},
#include "hooks.def"
#undef HOOK
#undef USE
};

static const char *const forwarded_names[] = {
#include "forward-names.inc"
};
extern void *forward_slots[countof(forwarded_names)];

static void *driver;       /* from dlopen() */
static _Atomic int loaded; /* 0: not tried, 1: ready, -1: there is none */

/* What stands in for a function that this driver does not have. */
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

static void load(void)
{
	char path[PATH_MAX];

	log_init("libweir", LOG_WARNING);
	if (late_bind_loader() && driver_find(path))
		driver = late.dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (driver)
		late_bind_threads(driver);
	if (driver)
		log_debug("the driver is %s", path);
	else
		log_debug("there is no CUDA driver here");

	void *missing = driver ? (void *)function_missing : (void *)driver_missing;
	for (size_t i = 0; i < HOOKS; i++) {
		void *address = driver ? late.dlsym(driver, driver_hooks[i].name) : NULL;
		driver_hooks[i].real = address ? address : missing;
	}
	atomic_store(&loaded, driver ? 1 : -1);
}

bool driver_ready(void)
{
	static struct once loading;

	int state = atomic_load_explicit(&loaded, memory_order_acquire);
	if (!state) {
		once(&loading, load);
		state = atomic_load(&loaded);
	}
	return state > 0;
}

void *driver_swap(void *address)
{
	for (size_t i = 0; i < HOOKS; i++) {
		if (driver_hooks[i].replacement && driver_hooks[i].real == address)
			return driver_hooks[i].replacement;
	}
	return address;
}

/* Called by the forwarders' stubs, once for each function that is used. */
void *forward_resolve(size_t index);
void *forward_resolve(size_t index)
{
	void *address = driver_ready() ? late.dlsym(driver, forwarded_names[index]) : NULL;

	if (!address)
		address = driver ? (void *)function_missing : (void *)driver_missing;
	__atomic_store_n(&forward_slots[index], address, __ATOMIC_RELEASE);
	return address;
}
