/* The library that ours stands in front of: found and opened by absolute path on the first call.
 * libweir.so stands in front of the driver, libweir-nvml.so in front of NVML; each defines `shim`.
 */
#pragma once

#include "weir/base.h"

#define EXPORT __attribute__((visibility("default")))

struct shim {
	const char *name;              /* for the log */
	bool (*find)(char *path);      /* room for PATH_MAX; false: there is none */
	void (*opened)(void *library); /* looks functions up; NULL: there is no library */
	/* Stand-ins for a function that the library lacks, and for all if there is no library. */
	void *function_missing, *library_missing;
	const char *const *forwarded; /* names, in the order of the forwarders' stubs */
};
extern const struct shim shim;

extern _Atomic int shim_opened; /* 0: not tried, 1: ready, -1: there is none */
bool shim_open(void);

/* Opens it on the first call. False: there is none here. */
static inline bool shim_ready(void)
{
	int state = load_acquire(&shim_opened);

	return state ? state > 0 : shim_open();
}

/* Never NULL. Valid from shim.opened() on. */
void *shim_function(const char *name);
