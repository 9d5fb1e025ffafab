#include "daemon/decider.h"

#include <stdio.h>
#include <string.h>

#include "weir/units.h"
#include "config/config.h"
#include "kubernetes/pods.h"
#include "policy/min-rate.h"
#include "policy/objective.h"
#include "policy/yield.h"
#include "scheduler/level.h"
#include "scheduler/tenant-spec.h"

#include "weir/base.h"
#include "weir/log.h"

static void name_from_pod(struct tenant *tenant, const struct pod *pod,
			  const struct pod_container *container)
{
	snprintf(tenant->namespace_, sizeof(tenant->namespace_), "%s", pod->namespace_);
	snprintf(tenant->pod, sizeof(tenant->pod), "%s", pod->name);
	if (container)
		snprintf(tenant->container, sizeof(tenant->container), "%s", container->name);
}

const struct pod *decider_pod(const struct decider *decider, const struct tenant *tenant)
{
	return pods_of(decider->pods, &tenant->identity);
}

static struct tenant_spec decide_in_cluster(struct decider *decider, struct tenant *tenant,
					    struct level_decision *out)
{
	const struct pod *pod = decider_pod(decider, tenant);
	struct level_input input = {.qos = tenant->identity.qos};
	struct tenant_spec spec = tenant_spec_unknown();

	/* Until the API server has sent the pod, it displaces nobody of its level. */
	if (tenant->identity.in_pod)
		spec.weight = WEIGHT_LEAST;
	tenant->pod_known |= pod != NULL;
	if (pod) {
		const struct pod_container *container =
			pod_container(pod, tenant->identity.container_id);
		name_from_pod(tenant, pod, container);
		spec = tenant_spec_of_pod(&decider->config->levels, pod, container);
		input = (struct level_input){.annotation = pod->priority,
					     .namespace_ = pod->namespace_,
					     .priority_class = pod->priority_class,
					     .qos = pod->qos ? pod->qos : tenant->identity.qos,
					     .known_pod = true};
	}
	level_decide(out, &decider->config->levels, &input);
	return spec;
}

static void apply_level(struct tenant *tenant, const struct level_decision *decision)
{
	if (tenant->level == decision->level && strcmp(tenant->reason, decision->reason) == 0)
		return;

	tenant->level = decision->level;
	memcpy(tenant->reason, decision->reason, sizeof(tenant->reason));
	log_line(decision->annotation_refused ? LOG_WARNING : LOG_INFO, WHOSE "level %s, %s",
		 WHO(tenant), config_level_name(decision->level), decision->reason);
}

void decider_mark(struct decider *decider)
{
	if (decider->limited)
		return;
	memories_mark(decider->memories->mark);
	gpu_sockets_mark(decider->gpu_sockets);
	decider->limited = true;
}

static void say_compute(struct tenant *tenant, const struct tenant_spec *spec)
{
	if (*spec->wanted_compute && !spec->compute_limit)
		log_warning(WHOSE "compute limit '%s' refused: expected " LIMIT_EXPECTED,
			    WHO(tenant), spec->wanted_compute);
	else if (spec->compute_limit)
		log_info(WHOSE "compute limit: %u %% of a GPU's time", WHO(tenant),
			 spec->compute_limit);
	else
		log_info(WHOSE "compute limit: none", WHO(tenant));
	tenant->compute_limit = spec->compute_limit;
	snprintf(tenant->wanted_compute, sizeof(tenant->wanted_compute), "%s",
		 spec->wanted_compute);
}

static void say_yield(struct tenant *tenant, const struct tenant_spec *spec)
{
	char text[YIELD_TEXT_MAX];

	if (spec->yield_refused)
		log_warning(WHOSE "yield '%s' refused: expected %s", WHO(tenant),
			    spec->wanted_yield, YIELD_EXPECTED);
	else
		log_info(WHOSE "lower levels leave it: %s", WHO(tenant),
			 yield_format(spec->yield, text));
	tenant->yield = spec->yield;
	tenant->yield_refused = spec->yield_refused;
	snprintf(tenant->wanted_yield, sizeof(tenant->wanted_yield), "%s", spec->wanted_yield);
}

static void say_min_rate(struct tenant *tenant, const struct tenant_spec *spec)
{
	char text[MIN_RATE_TEXT_MAX];

	if (*spec->wanted_rate && !spec->min_rate)
		log_warning(WHOSE "minimum rate '%s' refused: expected " MIN_RATE_EXPECTED,
			    WHO(tenant), spec->wanted_rate);
	else if (spec->min_rate)
		log_info(WHOSE "minimum rate: %s of its speed alone%s", WHO(tenant),
			 min_rate_format(spec->min_rate, text),
			 spec->min_rate_holds ? "" : ", against lower levels only");
	else
		log_info(WHOSE "minimum rate: none", WHO(tenant));
	tenant->min_rate = spec->min_rate;
	tenant->min_rate_holds = spec->min_rate_holds;
	snprintf(tenant->wanted_rate, sizeof(tenant->wanted_rate), "%s", spec->wanted_rate);
}

static void apply_spec(struct decider *decider, struct tenant *tenant,
		       const struct tenant_spec *spec)
{
	bool same_latency = strcmp(tenant->wanted_latency, spec->wanted_latency) == 0;
	bool same_weight = strcmp(tenant->wanted_weight, spec->wanted_weight) == 0;
	bool same_refusal = tenant->weight_refused == spec->weight_refused;
	bool same_compute = tenant->compute_limit == spec->compute_limit &&
			    strcmp(tenant->wanted_compute, spec->wanted_compute) == 0;
	bool same_yield = tenant->yield == spec->yield &&
			  strcmp(tenant->wanted_yield, spec->wanted_yield) == 0;
	bool same_rate = tenant->min_rate == spec->min_rate &&
			 (!spec->min_rate || tenant->min_rate_holds == spec->min_rate_holds) &&
			 strcmp(tenant->wanted_rate, spec->wanted_rate) == 0;

	if (tenant->share == spec->weight && tenant->slo == spec->slo && same_latency &&
	    same_weight && same_refusal && same_compute && same_yield && same_rate)
		return;
	if (!same_latency && *spec->wanted_latency && !spec->slo)
		log_warning(WHOSE "latency objective refused: expected " OBJECTIVE_EXPECTED
				  ", not '%s'",
			    WHO(tenant), spec->wanted_latency);
	if (!(same_weight && same_refusal) && spec->weight_refused)
		log_warning(WHOSE "weight '%s' refused: expected " WEIGHT_EXPECTED
				  ", above its share of %u only in levels.raiseNamespaces",
			    WHO(tenant), spec->wanted_weight, spec->weight);
	if (!same_compute)
		say_compute(tenant, spec);
	if (!same_yield)
		say_yield(tenant, spec);
	if (!same_rate)
		say_min_rate(tenant, spec);
	tenant->slo = spec->slo;
	tenant->share = spec->weight;
	tenant->weight_refused = spec->weight_refused;
	snprintf(tenant->wanted_latency, sizeof(tenant->wanted_latency), "%s",
		 spec->wanted_latency);
	snprintf(tenant->wanted_weight, sizeof(tenant->wanted_weight), "%s", spec->wanted_weight);
	for (struct client *client = tenant->clients; client; client = client->tenant_next)
		scheduler_change(decider->scheduler, client->gpu);
}

/* Of a GPU's memory, what the other containers' limits leave. */
static uint64_t room_beside(const struct decider *decider, const struct tenant *tenant,
			    const struct gpu *gpu)
{
	uint64_t room = gpu->memory / 100 * decider->config->memory_overcommit;

	for (const struct tenant *other = decider->tenants->all; other; other = other->hh.next) {
		const struct memory *memory =
			other == tenant ? NULL
					: memories_get(decider->memories, other->key, gpu->id);
		if (memory)
			room -= smaller(room, memory_limit(memory));
	}
	return room;
}

uint64_t decider_memory_limit(const struct decider *decider, const struct tenant *tenant,
			      const struct gpu *gpu, bool *cut)
{
	struct config_memory by_default = gpu_settings(decider->config, gpu).memory;
	bool less;

	cut = cut ? cut : &less;
	uint64_t limit = memory_spec_limit(&tenant->memory, &by_default, gpu->memory, cut);
	uint64_t least = memory_spec_default(&tenant->memory, &by_default, gpu->memory);
	/* The default is everybody's right. What an annotation adds must fit beside the others. */
	if (!tenant->identity.in_pod || !gpu->memory || !least || limit <= least)
		return limit;
	uint64_t room = room_beside(decider, tenant, gpu);
	*cut |= limit > room;
	return smaller(limit, larger(least, room - room % WEIR_MEMORY_CHUNK));
}

uint32_t decider_memory_wait(const struct decider *decider, const struct tenant *tenant)
{
	enum memory_full full = tenant->memory.full;

	if (full == MEMORY_FULL_DEFAULT)
		full = decider->config->memory_full;
	return full == MEMORY_FULL_WAIT ? (uint32_t)(decider->config->memory_wait / NS_PER_MS) : 0;
}

bool decider_has_limit(const struct decider *decider, const struct tenant *tenant)
{
	const struct gpu *gpu = decider->gpus->all;

	while (gpu && !decider_memory_limit(decider, tenant, gpu, NULL))
		gpu = gpu->hh.next;
	return gpu || tenant->memory.bytes;
}

static bool default_limits(const struct decider *decider)
{
	const struct gpu *gpu = decider->gpus->all;

	while (gpu && gpu_settings(decider->config, gpu).memory.kind == MEMORY_NONE)
		gpu = gpu->hh.next;
	return gpu;
}

static bool rules_limit(const struct decider *decider)
{
	size_t i = 0;

	while (i < decider->config->n_rules && !decider->config->rules[i].memory)
		i++;
	return decider->standalone && i < decider->config->n_rules;
}

static bool pod_limits(const struct pod *pod)
{
	uint64_t bytes;

	return memory_parse(pod->memory, &bytes) || pod_claimed(pod);
}

void decider_mark_limits(struct decider *decider)
{
	if (!decider->limited && (default_limits(decider) || rules_limit(decider) ||
				  (decider->pods && pods_search(decider->pods, pod_limits))))
		decider_mark(decider);
}

static void say_memory(const struct tenant *tenant, const struct gpu *gpu, uint64_t reserved,
		       uint64_t limit)
{
	log_info(WHOSE "limit of memory on %s: %llu MiB%s", WHO(tenant), gpu->id,
		 (unsigned long long)(limit >> 20), limit ? "" : " (none)");
	if (limit && reserved > limit)
		log_warning(WHOSE
			    "has %llu MiB of %s, more than its limit: it keeps them, and gets "
			    "no more until it has freed some",
			    WHO(tenant), (unsigned long long)(reserved >> 20), gpu->id);
}

static void limit_memory(struct decider *decider, const struct tenant *tenant,
			 const struct gpu *gpu)
{
	const struct memory *memory = memories_get(decider->memories, tenant->key, gpu->id);
	bool cut;
	uint64_t limit = decider_memory_limit(decider, tenant, gpu, &cut);

	if (memory)
		atomic_store(&memory->limit.limit->wait_ms, decider_memory_wait(decider, tenant));
	if (memory && memory_limit(memory) != limit) {
		atomic_store(&memory->limit.limit->limit, limit);
		say_memory(tenant, gpu, memory_reserved(memory), limit);
	}
	if (cut)
		log_limited(LOG_WARNING, 1,
			    WHOSE
			    "limit of memory '%s' cut to %llu MiB on %s: only namespaces of "
			    "levels.raiseNamespaces may have more than the default, and limits "
			    "add up to memoryOvercommit at most",
			    WHO(tenant), tenant->wanted_memory, (unsigned long long)(limit >> 20),
			    gpu->id);
}

void decider_share_memory(struct decider *decider)
{
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next)
		if (tenant->memory_known && tenant->memory.may_raise && tenant->memory.bytes)
			decider_apply_limits(decider, tenant);
}

/* True: the annotation is wrong, and the previous limit holds. */
static bool refuse_memory(struct tenant *tenant, const struct tenant_spec *spec)
{
	bool same_words = strcmp(tenant->wanted_memory, spec->wanted_memory) == 0;

	snprintf(tenant->wanted_memory, sizeof(tenant->wanted_memory), "%s", spec->wanted_memory);
	tenant->memory_refused = *spec->wanted_memory && !spec->memory.bytes;
	if (tenant->memory_refused && !same_words)
		log_warning(WHOSE "limit of memory refused: expected " MEMORY_EXPECTED ", not '%s'",
			    WHO(tenant), spec->wanted_memory);
	return tenant->memory_refused;
}

void decider_apply_limits(struct decider *decider, struct tenant *tenant)
{
	if (!tenant->memory_known)
		return;
	if (decider_has_limit(decider, tenant))
		decider_mark(decider);
	for (struct gpu *gpu = decider->gpus->all; gpu; gpu = gpu->hh.next)
		limit_memory(decider, tenant, gpu);
	for (struct client *client = tenant->clients; client; client = client->tenant_next)
		atomic_store(&client->pages.control->memory_limit,
			     decider_memory_limit(decider, tenant, client->gpu, NULL));
}

static void apply_memory(struct decider *decider, struct tenant *tenant,
			 const struct tenant_spec *spec)
{
	struct memory_spec wanted = spec->memory;

	if (!spec->known)
		return;
	bool refused = refuse_memory(tenant, spec);
	if (refused)
		wanted.bytes = tenant->memory.bytes;
	if (tenant->memory_known && tenant->memory.bytes == wanted.bytes &&
	    tenant->memory.share == wanted.share && tenant->memory.claimed == wanted.claimed &&
	    tenant->memory.may_raise == wanted.may_raise && tenant->memory.full == wanted.full)
		return;
	tenant->memory = wanted;
	/* The annotation was never right: the default limit, if any, applies. */
	if (refused && !tenant->memory_known && !decider_has_limit(decider, tenant))
		return;
	tenant->memory_known = true;
	decider_apply_limits(decider, tenant);
}

/* A pod deleted by force is unknown to the API server while the kubelet has yet to end it. The
 * decision holds until its processes are gone. */
static bool outlives_pod(const struct decider *decider, const struct tenant *tenant)
{
	return tenant->pod_known && !decider_pod(decider, tenant);
}

void decider_decide(struct decider *decider, struct tenant *tenant)
{
	struct level_decision decision = {0};

	if (outlives_pod(decider, tenant))
		return;
	struct tenant_spec spec =
		decider->standalone ? tenant_spec_of_rule(level_by_rule(&decision, decider->config,
									&tenant->identity))
				    : decide_in_cluster(decider, tenant, &decision);
	apply_level(tenant, &decision);
	apply_spec(decider, tenant, &spec);
	apply_memory(decider, tenant, &spec);
}

static void read_memory(struct decider *decider, const struct tenant *tenant, struct usage *usage)
{
	const struct memory *memory = memories_get(decider->memories, tenant->key, usage->gpu->id);

	usage->memory_limit = decider_memory_limit(decider, tenant, usage->gpu, &usage->memory_cut);
	usage->memory_reserved = usage->quotas.accounts = 0;
	if (!memory)
		return;
	usage->memory_limit = memory_limit(memory);
	usage->memory_reserved = memory_reserved(memory);
	usage->quotas.accounts = memory->n;
}

void decider_read_memory(struct decider *decider)
{
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next)
		for (struct usage *usage = tenant->usages; usage; usage = usage->next)
			read_memory(decider, tenant, usage);
}

struct memory_owner decider_memory_owner(const struct decider *decider, const struct tenant *tenant,
					 const struct gpu *gpu)
{
	return (struct memory_owner){.tenant = tenant->key,
				     .gpu = gpu->id,
				     .identity = &tenant->identity,
				     .known = tenant->memory_known,
				     .limit = decider_memory_limit(decider, tenant, gpu, NULL),
				     .wait_ms = decider_memory_wait(decider, tenant)};
}

bool decider_awaits_pod(const struct decider *decider, const struct tenant *tenant)
{
	return decider->pods && !decider->pods_known && tenant->identity.in_pod;
}
