/* The real driver: found once, opened by absolute path, and the functions in it. */
#pragma once

#include "shim/shim.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

enum hook_id {
#define HOOK(name) HOOK_##name,
#define USE(name)  HOOK_##name,
#include "hooks.def"
#undef HOOK
#undef USE
	HOOKS
};

struct hook {
	const char *name;
	void *replacement; /* NULL: called, but not hooked */
	/* Never NULL once the driver is loaded: a function that it lacks answers NOT_SUPPORTED. */
	void *real;
};

extern struct hook driver_hooks[HOOKS];

/* The driver's function, with cuda.h's prototype. Valid after driver_ready(). */
#define real(function) ((__typeof__(&(function)))driver_hooks[HOOK_##function].real)

/* Loads the driver on the first call. False: there is none here. Every hook calls it before real().
 */
static inline bool driver_ready(void)
{
	return shim_ready();
}

static inline void driver_swap_capture_mode(CUstreamCaptureMode *mode)
{
	real(cuThreadExchangeStreamCaptureMode)(mode);
}

/* Until the end of the scope no call disturbs a capture, in this or another thread. */
#define beside_captures()                                             \
	cleanup(driver_swap_capture_mode) CUstreamCaptureMode mode_ = \
		CU_STREAM_CAPTURE_MODE_RELAXED;                       \
	driver_swap_capture_mode(&mode_)

typedef void driver_wait_function(void);

/* Set by what keeps the GPU for a launch (gates/expect.c): lets it go. */
extern _Atomic(driver_wait_function *) driver_before_wait;

/* Before a call of the driver that may wait for work of the current context. */
static inline void driver_waits(void)
{
	driver_wait_function *function = load_relaxed(&driver_before_wait);

	if (function)
		function();
}

/* 0: not known, also of an attribute that this driver does not know. */
int driver_attribute(CUdevice device, CUdevice_attribute attribute);
/* 90: compute capability 9.0. */
unsigned driver_capability(CUdevice device);
/* The current context, or NULL. */
CUcontext driver_context(void);

/* Our function in place of the driver's at @address, or @address itself. */
void *driver_swap(void *address);

/* $WEIR_DRIVER, else the first libcuda.so.1 on the loader's paths that is not us. False: none.
 * @path: room for PATH_MAX. */
bool driver_find(char *path);
