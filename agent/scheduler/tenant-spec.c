#include "scheduler/tenant-spec.h"

#include "scheduler/level.h"
#include "policy/min-rate.h"
#include "policy/objective.h"
#include "policy/yield.h"
#include "weir/units.h"

#include "weir/protocol.h"

#include <string.h>

#define WHOLE 100 /* shares of a GPU */

enum memory_full memory_full_parse(const char *text)
{
	if (strcmp(text, "wait") == 0)
		return MEMORY_FULL_WAIT;
	return strcmp(text, "fail") == 0 ? MEMORY_FULL_FAIL : MEMORY_FULL_DEFAULT;
}

static uint32_t read_compute(const char *wanted)
{
	uint64_t percent;

	return number_parse(wanted, 1, WHOLE, &percent) ? (uint32_t)percent : 0;
}

bool min_rate_holds(uint32_t thousandths, uint32_t share, bool may_raise)
{
	return may_raise || thousandths <= share * (MIN_RATE_ONE / WHOLE);
}

static void read_min_rate(struct tenant_spec *spec)
{
	if (!min_rate_parse(spec->wanted_rate, &spec->min_rate))
		spec->min_rate = 0;
	spec->min_rate_holds =
		min_rate_holds(spec->min_rate, spec->memory.share, spec->memory.may_raise);
}

/* @share: 0: no container of the pod is known to have one, so it must not outweigh those that have.
 */
static void read_weight(struct tenant_spec *spec, uint32_t share, bool known)
{
	uint64_t wanted;

	spec->weight = share ? share : WEIGHT_LEAST;
	if (!*spec->wanted_weight)
		return;
	bool valid = number_parse(spec->wanted_weight, 1, WHOLE, &wanted);
	if (valid && (wanted <= spec->weight || spec->memory.may_raise))
		spec->weight = (uint32_t)wanted;
	else /* the share of an unknown container may be larger */
		spec->weight_refused = known || !valid;
}

struct tenant_spec tenant_spec_of_pod(const struct config_levels *config, const struct pod *pod,
				      const struct pod_container *container)
{
	struct tenant_spec spec = {.wanted_weight = pod->weight,
				   .wanted_latency = pod->latency_slo,
				   .wanted_memory = pod->memory,
				   .wanted_compute = pod->compute_limit,
				   .wanted_yield = pod->yield,
				   .wanted_rate = pod->min_rate,
				   .compute_limit = read_compute(pod->compute_limit),
				   .yield = YIELD_AUTO,
				   .known = true};

	spec.memory.share = container ? container->share : pod->least_share;
	spec.memory.claimed = container ? container->claimed : 0;
	spec.memory.may_raise = level_may_raise(config, pod->namespace_);
	spec.memory.full = memory_full_parse(pod->memory_full);
	read_weight(&spec, spec.memory.share, container);
	read_min_rate(&spec);
	spec.yield_refused = *spec.wanted_yield && !yield_parse(spec.wanted_yield, &spec.yield);
	if (!objective_parse(spec.wanted_latency, &spec.slo))
		spec.slo = 0;
	if (!memory_parse(spec.wanted_memory, &spec.memory.bytes))
		spec.memory.bytes = 0;
	return spec;
}

struct tenant_spec tenant_spec_of_rule(const struct config_rule *rule)
{
	struct tenant_spec spec = tenant_spec_unknown();

	spec.known = true;
	if (!rule)
		return spec;
	if (rule->share)
		spec.weight = rule->share;
	spec.slo = rule->latency_slo;
	spec.memory = (struct memory_spec){.bytes = rule->memory,
					   .share = rule->share,
					   .may_raise = true,
					   .full = MEMORY_FULL_DEFAULT};
	if (rule->latency_slo)
		spec.wanted_latency = "of its rule";
	spec.compute_limit = rule->compute_limit;
	if (rule->compute_limit)
		spec.wanted_compute = "of its rule";
	spec.yield = rule->yield;
	if (rule->yield != YIELD_AUTO)
		spec.wanted_yield = "of its rule";
	spec.min_rate = rule->min_rate;
	spec.min_rate_holds = true;
	if (rule->min_rate)
		spec.wanted_rate = "of its rule";
	if (rule->memory)
		spec.wanted_memory = "of its rule";
	return spec;
}

struct tenant_spec tenant_spec_unknown(void)
{
	return (struct tenant_spec){.weight = WHOLE,
				    .yield = YIELD_AUTO,
				    .memory.full = MEMORY_FULL_DEFAULT,
				    .wanted_weight = "",
				    .wanted_latency = "",
				    .wanted_compute = "",
				    .wanted_yield = "",
				    .wanted_rate = "",
				    .wanted_memory = ""};
}

/* A part of a GPU is a multiple of 2 MiB. */
uint64_t memory_spec_default(const struct memory_spec *spec, const struct config_memory *by_default,
			     uint64_t gpu_memory)
{
	if (spec->claimed)
		return spec->claimed - spec->claimed % WEIR_MEMORY_CHUNK;
	if (spec->share == WHOLE || by_default->kind == MEMORY_NONE)
		return 0;
	if (by_default->kind == MEMORY_BYTES)
		return by_default->bytes;
	uint64_t part = gpu_memory / WHOLE * spec->share;
	return part - part % WEIR_MEMORY_CHUNK;
}

uint64_t memory_spec_limit(const struct memory_spec *spec, const struct config_memory *by_default,
			   uint64_t gpu_memory, bool *cut)
{
	uint64_t limit = memory_spec_default(spec, by_default, gpu_memory);

	*cut = spec->bytes && limit && spec->bytes > limit && !spec->may_raise;
	return !spec->bytes || *cut ? limit : spec->bytes;
}
