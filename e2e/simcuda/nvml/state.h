/* Shared by the files of the simulated NVML. */
#pragma once

#define NVML_NO_UNVERSIONED_FUNC_DEFS /* every spelling is declared, none is renamed */
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

#include <stdbool.h>

#include "simcuda/machine/machine.h"

/* The machine, as an observer; null before nvmlInit() and after the last nvmlShutdown(). */
struct machine *nvml_machine(void);

/* NVML_SUCCESS and @gpu if @device is one and works: a file `lost` in its folder takes it away. */
nvmlReturn_t nvml_device(nvmlDevice_t device, unsigned *gpu);
nvmlDevice_t nvml_handle(unsigned gpu);

#define RETURN_IF(call)                   \
	do {                              \
		nvmlReturn_t r_ = (call); \
		if (r_ != NVML_SUCCESS)   \
			return r_;        \
	} while (0)
