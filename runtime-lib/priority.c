#include "priority.h"

#include "weir/log.h"

#define ATTRIBUTES_MAX 15 /* that a program's launch may have besides */

void priority_init(struct client *client)
{
	int least = 0, greatest = 0;

	if (!client->concurrent ||
	    real(cuCtxGetStreamPriorityRange)(&least, &greatest) != CUDA_SUCCESS)
		greatest = 0;
	atomic_store(&client->priorities, greatest < 0 ? (unsigned)-greatest : 0);
}

int priority_of_stream(const struct client *client, CUstream stream)
{
	int own = 0;

	/* The default streams have none. */
	if (atomic_load(&client->priorities) && (uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD)
		real(cuStreamGetPriority)(stream, &own);
	return own;
}

/* Each level has a part of the range (0, the least, to @n), and begins at its end; streams to which
 * the program gave a priority are one step ahead, if that is not the next level's. */
static unsigned steps(unsigned level, unsigned n, bool ahead)
{
	unsigned first = level * n / (WEIR_LEVELS - 1), next = (level + 1) * n / (WEIR_LEVELS - 1);

	return ahead && first + 1 < next && first < n ? first + 1 : first;
}

/* False: the program said one itself, or more than there is room for. */
static bool take_attributes(CUlaunchAttribute *out, const CUlaunchConfig *config)
{
	if (config->numAttrs > ATTRIBUTES_MAX || (config->numAttrs && !config->attrs))
		return false;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			return false;
		out[i] = config->attrs[i];
	}
	return true;
}

static CUlaunchConfig config_of(const struct geometry *g)
{
	return (CUlaunchConfig){.gridDimX = g->grid[0],
				.gridDimY = g->grid[1],
				.gridDimZ = g->grid[2],
				.blockDimX = g->block[0],
				.blockDimY = g->block[1],
				.blockDimZ = g->block[2],
				.sharedMemBytes = g->shared};
}

static bool launch(const struct kernel_call *call, CUstream stream, bool per_thread, int priority,
		   CUresult *result)
{
	CUlaunchAttribute attributes[ATTRIBUTES_MAX + 1];
	CUlaunchConfig config = call->config ? *call->config : config_of(&call->geometry);

	if (!take_attributes(attributes, &config))
		return false;
	attributes[config.numAttrs++] =
		(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = priority};
	config.attrs = attributes;
	config.hStream = stream;
	__typeof__(&cuLaunchKernelEx) function =
		per_thread ? real(cuLaunchKernelEx_ptsz) : real(cuLaunchKernelEx);
	*result = function(&config, (CUfunction)call->geometry.function, call->params, call->extra);
	return true;
}

/* What is wrong with the launch itself the driver says again, without the attribute. */
static bool refused(struct client *client, CUresult result)
{
	if (result == CUDA_ERROR_NOT_SUPPORTED) {
		atomic_store(&client->priorities, 0);
		log_info("the driver takes no priorities of launches");
	}
	return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE;
}

/* Of other levels. */
static bool has_others(const struct weir_control_page *control)
{
	return atomic_load_explicit(&control->above, memory_order_relaxed) ||
	       atomic_load_explicit(&control->below, memory_order_relaxed);
}

bool priority_launch(const struct stream *stream, const struct standing *standing,
		     const struct kernel_call *call, CUstream handle, bool per_thread,
		     CUresult *result)
{
	struct client *client = stream->client;
	unsigned n = atomic_load_explicit(&client->priorities, memory_order_relaxed);

	if (!n || !has_others(client_control(standing)))
		return false;
	int wanted = -(int)steps(standing->level, n, stream->priority < 0);
	return wanted != stream->priority && launch(call, handle, per_thread, wanted, result) &&
	       !refused(client, *result);
}
