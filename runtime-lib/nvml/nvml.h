/* The real NVML: found once, opened by absolute path, and the functions in it. libweir-nvml.so
 * stands before it as libweir.so stands before the driver. */
#pragma once

#include "shim/shim.h"

#define NVML_NO_UNVERSIONED_FUNC_DEFS /* every spelling is declared, none is renamed */
#include <nvml.h>

enum nvml_id {
#define HOOK(name) NVML_##name,
#define USE(name)  NVML_##name,
#include "nvml-hooks.def"
#undef HOOK
#undef USE
	NVML_IDS
};

/* Never NULL once NVML is loaded. Missing functions return FUNCTION_NOT_FOUND; without NVML all
 * return LIBRARY_NOT_FOUND. */
extern void *nvml_functions[NVML_IDS];

/* NVML's own function, with nvml.h's prototype. Valid after nvml_ready(). */
#define real(function) ((__typeof__(&(function)))nvml_functions[NVML_##function])

/* Loads NVML on the first call. Every hook calls this before real(). False: there is no NVML. */
bool nvml_ready(void);

/* In a forked child, which has no memory pages. */
void nvml_memory_forget(void);
