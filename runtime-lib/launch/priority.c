#include "launch/priority.h"

#include "weir/log.h"

#define ATTRIBUTES_MAX 15 /* that a program's launch may have besides */
#define LENGTHS        4  /* by length, above the least: for those below LONG_KERNEL_NS, */
#define LONGER         2  /* and for those of up to twice that, four and eight times that */

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

/* Of other levels. */
static bool has_others(const struct weir_control_page *control)
{
	return atomic_load_explicit(&control->above, memory_order_relaxed) ||
	       atomic_load_explicit(&control->below, memory_order_relaxed);
}

static bool are_ordered(const struct weir_control_page *control)
{
	return atomic_load_explicit(&control->flags, memory_order_relaxed) & WEIR_CONTROL_AHEAD;
}

static bool equals_go_ahead(const struct weir_control_page *control)
{
	return are_ordered(control) && !has_others(control);
}

/* Abreast all who have work at the same time are done late; so the first at least is done sooner,
 * by what the others' blocks leave it. But nobody waits behind a long launch. */
static bool goes_first(const struct client *client, const struct weir_control_page *control,
		       uint64_t predicted)
{
	return atomic_load_explicit(&client->came_first, memory_order_relaxed) &&
	       are_ordered(control) && predicted < LONG_KERNEL_NS;
}

bool priority_by_length(const struct client *client)
{
	return atomic_load_explicit(&client->priorities, memory_order_relaxed) >= LENGTHS;
}

bool priority_yields(const struct client *client, const struct level_binding *binding)
{
	return priority_by_length(client) && equals_go_ahead(control_page(binding));
}

bool priority_is_given(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			return true;
	}
	return false;
}

/* Each level has a part of the range (0, the least, to @n), and begins at its end; @ahead, streams
 * to which the program gave a priority and who came first, are one step ahead, if that is not the
 * next level's. */
static unsigned by_level(unsigned level, unsigned n, bool ahead)
{
	unsigned first = level * n / (WEIR_LEVELS - 1), next = (level + 1) * n / (WEIR_LEVELS - 1);

	return ahead && first + 1 < next && first < n ? first + 1 : first;
}

/* What is not long for a turn among equals is not told apart: it comes and goes as it would without
 * us, and a stream of short kernels has one priority. */
static unsigned by_length(uint64_t predicted)
{
	unsigned step = LENGTHS;

	for (uint64_t most = LONG_KERNEL_NS; step && predicted >= most; most *= LONGER)
		step--;
	return step;
}

int priority_of_launch(const struct stream *stream, const struct level_binding *binding,
		       uint64_t predicted)
{
	const struct weir_control_page *control = control_page(binding);
	unsigned n = atomic_load_explicit(&stream->client->priorities, memory_order_relaxed), step;
	bool ahead = stream->priority < 0;

	if (n && has_others(control))
		step = by_level(binding->level, n,
				ahead || goes_first(stream->client, control, predicted));
	else if (n >= LENGTHS && !ahead && equals_go_ahead(control))
		step = by_length(predicted);
	else
		return PRIORITY_OWN;
	return -(int)step == stream->priority ? PRIORITY_OWN : -(int)step;
}

/* False: the program said one itself, or more than there is room for. */
static bool take_attributes(CUlaunchAttribute *out, const CUlaunchConfig *config)
{
	if (config->numAttrs > ATTRIBUTES_MAX || (config->numAttrs && !config->attrs) ||
	    priority_is_given(config))
		return false;
	for (unsigned i = 0; i < config->numAttrs; i++)
		out[i] = config->attrs[i];
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

bool priority_launch(struct client *client, int priority, const CUlaunchConfig *config,
		     bool per_thread, CUfunction function, void **params, void **extra,
		     CUresult *result)
{
	CUlaunchAttribute attributes[ATTRIBUTES_MAX + 1];
	CUlaunchConfig with = *config;

	if (priority == PRIORITY_OWN || !atomic_load(&client->priorities) ||
	    !take_attributes(attributes, config))
		return false;
	attributes[with.numAttrs++] =
		(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = priority};
	with.attrs = attributes;
	__typeof__(&cuLaunchKernelEx) launch =
		per_thread ? real(cuLaunchKernelEx_ptsz) : real(cuLaunchKernelEx);
	*result = launch(&with, function, params, extra);
	return !refused(client, *result);
}
