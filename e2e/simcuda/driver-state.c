/* The one state, its lock, and what a fork does: a child has no driver, whatever it calls. */
#include "exec.h"

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
}

static bool allows(uintptr_t address, size_t size)
{
	return range_allows(address, size, false);
}

static CUresult start(void)
{
	int r = machine_open(&sim.machine, MACHINE_COMPUTE);

	if (r == MACHINE_FULL)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (r < 0)
		return CUDA_ERROR_NO_DEVICE;
	if (pthread_atfork(NULL, NULL, forked)) {
		machine_close(&sim.machine);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned i = 0; i < sim.machine.config.gpus; i++) {
		sim.devices[i].index = i;
		pthread_cond_init(&sim.devices[i].blocks.cond, NULL);
	}
	ptx_set_address_check(allows);
	atomic_store(&sim.state, SIM_READY);
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	if (atomic_load(&sim.state) == SIM_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED; /* and the lock may be a lost thread's */

	cleanup(sim_leave) int entered __attribute__((unused)) = sim_enter();

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return atomic_load(&sim.state) == SIM_READY ? CUDA_SUCCESS : start();
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}
