#include "scheduler/terms.h"

#include "scheduler/level.h"
#include "policy/objective.h"
#include "common/units.h"

#include "weir/protocol.h"

#define WHOLE 100 /* shares of a GPU */

/* False: something else. */
static bool parse_weight(const char *text, uint32_t *weight)
{
	uint32_t value = 0;

	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9' || value > WHOLE)
			return false;
		value = value * 10 + (uint32_t)(*c - '0');
	}
	if (value < 1 || value > WHOLE)
		return false;
	*weight = value;
	return true;
}

static void read_weight(struct terms *terms, uint32_t share)
{
	uint32_t wanted;

	terms->weight = share ? share : WHOLE;
	if (!*terms->wanted_weight)
		return;
	if (parse_weight(terms->wanted_weight, &wanted) &&
	    (wanted <= terms->weight || terms->memory.may_raise))
		terms->weight = wanted;
	else
		terms->weight_refused = true;
}

struct terms terms_of_pod(const struct config_levels *config, const struct pod *pod,
			  const struct pod_container *container)
{
	struct terms terms = {.wanted_weight = pod->weight,
			      .wanted_latency = pod->latency_slo,
			      .wanted_memory = pod->memory,
			      .known = true};

	terms.memory.share = container ? container->share : pod->least_share;
	terms.memory.may_raise = level_may_raise(config, pod->namespace_);
	read_weight(&terms, container ? container->share : 0);
	if (!objective_parse(terms.wanted_latency, &terms.slo))
		terms.slo = 0;
	if (!memory_parse(terms.wanted_memory, &terms.memory.bytes))
		terms.memory.bytes = 0;
	return terms;
}

struct terms terms_of_rule(const struct config_rule *rule)
{
	struct terms terms = terms_unknown();

	terms.known = true;
	if (!rule)
		return terms;
	if (rule->share)
		terms.weight = rule->share;
	terms.slo = rule->latency_slo;
	terms.memory = (struct memory_terms){rule->memory, rule->share, true};
	if (rule->latency_slo)
		terms.wanted_latency = "of its rule";
	if (rule->memory)
		terms.wanted_memory = "of its rule";
	return terms;
}

struct terms terms_unknown(void)
{
	return (struct terms){
		.weight = WHOLE, .wanted_weight = "", .wanted_latency = "", .wanted_memory = ""};
}

/* What a container has that nobody names a limit for; a multiple of 2 MiB where it is a part. */
static uint64_t default_limit(const struct memory_terms *terms,
			      const struct config_memory *by_default, uint64_t gpu_memory)
{
	if (terms->share == WHOLE || by_default->kind == MEMORY_NONE)
		return 0;
	if (by_default->kind == MEMORY_BYTES)
		return by_default->bytes;
	uint64_t part = gpu_memory / WHOLE * terms->share;
	return part - part % WEIR_MEMORY_CHUNK;
}

uint64_t memory_terms_limit(const struct memory_terms *terms,
			    const struct config_memory *by_default, uint64_t gpu_memory, bool *cut)
{
	uint64_t limit = default_limit(terms, by_default, gpu_memory);

	*cut = terms->bytes && limit && terms->bytes > limit && !terms->may_raise;
	return !terms->bytes || *cut ? limit : terms->bytes;
}
