#include "gates/priority.h"

#include "client/level-binding.h"
#include "gates/demand.h"

#include "weir/log.h"

#define ATTRIBUTES_MAX 15 /* that a program's launch may have besides */
#define LENGTHS        4  /* classes of length above the least: up to LONG_KERNEL_NS, */
#define LONGER         2  /* and up to two, four and eight times that */
#define ORDERED_AFTER  (10 * NS_PER_S) /* ns after the last launch that had no order */

struct launch_order launch_order_table[CLIENTS_MAX];

void priority_open(struct client *client)
{
	int least = 0, greatest = 0;

	if (!client->concurrent ||
	    real(cuCtxGetStreamPriorityRange)(&least, &greatest) != CUDA_SUCCESS)
		greatest = 0;
	atomic_store(&launch_order_of(client)->priorities, greatest < 0 ? (unsigned)-greatest : 0);
}

void priority_stream_made(struct stream *stream)
{
	int own = 0;

	/* The default streams have none. */
	if (atomic_load(&launch_order_of(stream->client)->priorities) &&
	    (uintptr_t)stream->handle > (uintptr_t)CU_STREAM_PER_THREAD)
		real(cuStreamGetPriority)(stream->handle, &own);
	stream->priority = own;
}

static bool has_other_levels(const struct weir_control_page *control)
{
	return load_relaxed(&control->above) || load_relaxed(&control->below);
}

static bool are_ordered(const struct weir_control_page *control)
{
	return load_relaxed(&control->flags) & WEIR_CONTROL_AHEAD;
}

static bool goes_by_length(const struct client *client, const struct weir_control_page *control)
{
	return load_relaxed(&launch_order_of(client)->priorities) >= LENGTHS &&
	       are_ordered(control) && !has_other_levels(control);
}

/* Same-level clients that run at the same time all finish late. So the first one at least finishes
 * sooner; the others' blocks fill what it leaves. But nobody waits behind a long launch. */
static bool goes_first(const struct client *client, const struct weir_control_page *control,
		       uint64_t predicted)
{
	return load_relaxed(&demand_of(client)->came_first) && are_ordered(control) &&
	       predicted < LONG_KERNEL_NS;
}

bool priority_stays(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		if (attribute->id == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
		    (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
		     attribute->value.cooperative))
			return true;
	}
	return false;
}

/* Each level has a part of the range, 0 (the least) to @n, and starts at its lower end. @ahead: one
 * step up, if the next level does not begin there: streams to which the program gave a priority,
 * and the client that came first. */
static unsigned by_level(unsigned level, unsigned n, bool ahead)
{
	unsigned first = level * n / (WEIR_LEVELS - 1), next = (level + 1) * n / (WEIR_LEVELS - 1);

	return ahead && first + 1 < next && first < n ? first + 1 : first;
}

/* Short launches all have one priority: a stream of short kernels runs as it would without us. */
static unsigned by_length(uint64_t predicted)
{
	unsigned step = LENGTHS;

	for (uint64_t most = LONG_KERNEL_NS; step && predicted >= most; most *= LONGER)
		step--;
	return step;
}

int priority_under_mps(const struct stream *stream, const struct level_binding *binding,
		       uint64_t predicted, bool formed)
{
	const struct weir_control_page *control = control_page(binding);
	const struct client *client = stream->client;
	unsigned n = load_relaxed(&launch_order_of(client)->priorities), step;
	bool ahead = stream->priority < 0, bounded = formed && binding_workers(binding);

	if (has_other_levels(control))
		step = by_level(binding->level, n,
				ahead || bounded || goes_first(client, control, predicted));
	else if (!ahead && bounded)
		step = smaller(n, 1);
	else if (!ahead && goes_by_length(client, control))
		step = by_length(predicted);
	else
		return PRIORITY_OWN;
	return -(int)step == stream->priority ? PRIORITY_OWN : -(int)step;
}

/* False: the priority stays, or there are more attributes than there is room for. */
static bool take_attributes(CUlaunchAttribute *out, const CUlaunchConfig *config)
{
	if (config->numAttrs > ATTRIBUTES_MAX || (config->numAttrs && !config->attrs) ||
	    priority_stays(config))
		return false;
	for (unsigned i = 0; i < config->numAttrs; i++)
		out[i] = config->attrs[i];
	return true;
}

/* If the launch itself is wrong, the driver says so again when it is launched without. */
static bool refused(struct client *client, CUresult result)
{
	if (result == CUDA_ERROR_NOT_SUPPORTED) {
		atomic_store(&launch_order_of(client)->priorities, 0);
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

	if (priority == PRIORITY_OWN || !atomic_load(&launch_order_of(client)->priorities) ||
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

void priority_work(struct client *client, struct tick *tick)
{
	struct launch_order *order = launch_order_of(client);

	atomic_store(&order->yields, goes_by_length(client, control_page(tick->binding)));
	if (atomic_exchange(&order->unordered, 0))
		order->ordered_at = tick->now + ORDERED_AFTER;
	order->ordered =
		atomic_load(&order->priorities) >= LENGTHS && tick->now >= order->ordered_at;
}
