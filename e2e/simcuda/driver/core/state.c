/* The state of the driver, its lock, and fork: a child has no driver. */
#include "simcuda/driver/exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct sim sim = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.copies = {.cond = PTHREAD_COND_INITIALIZER, .max = 2},
	.hosts = {.cond = PTHREAD_COND_INITIALIZER, .max = 1},
};

int sim_enter(void)
{
	pthread_mutex_lock(&sim.lock);
	return 1;
}

void sim_leave(const int *entered)
{
	(void)entered;
	pthread_mutex_unlock(&sim.lock);
}

void sim_say(const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!getenv("WEIR_SIM_LOG"))
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "simcuda: %s\n", line);
}

static void forked(void)
{
	atomic_store(&sim.state, SIM_FORKED);
	machine_forget(&sim.machine);
	channels_forked();
}

static bool allows(uintptr_t address, size_t size)
{
	return range_allows(address, size, false);
}

static void find_devices(void)
{
	uint32_t gpus[MACHINE_GPUS];

	sim.n_devices = (unsigned)machine_visible(&sim.machine, gpus);
	for (unsigned i = 0; i < sim.n_devices; i++)
		sim.devices[i].gpu = gpus[i];
}

static CUresult start(void)
{
	int r = machine_open(&sim.machine, MACHINE_COMPUTE);

	if (r == MACHINE_FULL)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (r < 0)
		return CUDA_ERROR_NO_DEVICE;
	find_devices();
	device_give_slots();
	if (!sim.n_devices || pthread_atfork(NULL, NULL, forked)) {
		machine_close(&sim.machine);
		return sim.n_devices ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NO_DEVICE;
	}
	for (unsigned i = 0; i < sim.n_devices; i++) {
		sim.devices[i].index = i;
		pthread_cond_init(&sim.devices[i].blocks.cond, NULL);
	}
	ptx_set_address_check(allows);
	blocks_init();
	atomic_store(&sim.state, SIM_READY);
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	if (atomic_load(&sim.state) == SIM_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED; /* the lock may be held for ever */

	cleanup(sim_leave) int entered __attribute__((unused)) = sim_enter();

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&sim.state) != SIM_READY)
		return start();
	channels_trap();
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}
