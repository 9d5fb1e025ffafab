/* Where a process meets CUDA: cuInit, and the look-up of functions by name, which hands out ours in
 * place of the driver's. */
#include "client/client.h"
#include "preempt/function.h"
#include "shim/weak-libc.h"
#include "client/link.h"
#include "memory/memory.h"
#include "preempt/module.h"
#include "client/stream.h"
#include "client/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* CUDA does not work in a forked child of a process that used it, so nothing of ours must: no
 * demand in the parent's name, no socket that keeps the parent alive in the agent's eyes. */
static void forked(void)
{
	worker_forget();
	link_forget();
	stream_forget_all();
	module_forget_all();
	linker_forget_all();
	function_forget_all();
	client_forget_all();
	memory_forget();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

EXPORT CUresult cuInit(unsigned flags)
{
	static struct once forks;

	if (driver_ready())
		once(&forks, watch_forks);
	return real(cuInit)(flags);
}

static CUresult swap(CUresult result, void **function)
{
	if (result == CUDA_SUCCESS && function && *function)
		*function = driver_swap(*function);
	return result;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	driver_ready();
	return swap(real(cuGetProcAddress)(symbol, function, version, flags), function);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
				    cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	driver_ready();
	return swap(real(cuGetProcAddress_v2)(symbol, function, version, flags, status), function);
}
