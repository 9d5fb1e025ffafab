/* The state of the driver, its lock, and fork: a child has no driver. */
#include "simcuda/driver/exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The GPU that a word of @length bytes of CUDA_VISIBLE_DEVICES names, by number or by a UUID's
 * beginning; -1: none. */
static int named_gpu(const char *word, size_t length)
{
	char uuid[MACHINE_UUID_TEXT], *end;
	unsigned long number = strtoul(word, &end, 10);

	if (length && end == word + length)
		return number < sim.machine.config.gpus ? (int)number : -1;
	for (unsigned gpu = 0; gpu < sim.machine.config.gpus && length > 4; gpu++) {
		machine_uuid_text(gpu, uuid);
		if (strncmp(uuid, word, length) == 0)
			return (int)gpu;
	}
	return -1;
}

/* All GPUs, or the named ones up to the first invalid name, as CUDA does. */
static void find_devices(void)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	unsigned n = 0;

	for (; list && n < MACHINE_GPUS; n++) {
		size_t length = strcspn(list, ",");
		int gpu = named_gpu(list, length);
		if (gpu < 0)
			break;
		sim.devices[n].gpu = (unsigned)gpu;
		list = list[length] ? list + length + 1 : "";
	}
	for (; !list && n < sim.machine.config.gpus; n++)
		sim.devices[n].gpu = n;
	sim.n_devices = n;
}

static CUresult start(void)
{
	int r = machine_open(&sim.machine, MACHINE_COMPUTE);

	if (r == MACHINE_FULL)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (r < 0)
		return CUDA_ERROR_NO_DEVICE;
	find_devices();
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
