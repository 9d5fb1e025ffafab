/* The library that ours stands before: found and opened by absolute path on the first call, once.
 * libweir.so stands before the driver, libweir-nvml.so before NVML; each defines `shim`. */
#pragma once

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

struct shim {
	const char *name;              /* for the log */
	bool (*find)(char *path);      /* room for PATH_MAX; false: there is none */
	void (*opened)(void *library); /* NULL: there is none; the place to look functions up */
	/* What answers in place of a function that it lacks, and of all where there is none. */
	void *function_missing, *library_missing;
	const char *const *forwarded; /* functions in the order of the forwarders' stubs */
};
extern const struct shim shim;

/* Opens it on the first call. False: there is none here. */
bool shim_ready(void);
/* Never NULL. Valid from shim.opened() on. */
void *shim_function(const char *name);
