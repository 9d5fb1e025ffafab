#include "daemon/agent.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "daemon/control.h"
#include "daemon/http.h"
#include "scheduler/level.h"
#include "policy/objective.h"
#include "common/units.h"
#include "daemon/report.h"
#include "daemon/session.h"
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

/* NULL: not known (yet), or none. */
static const struct pod *pod_of(const struct agent *agent, const struct tenant *tenant)
{
	return agent->pods && tenant->identity.in_pod
		       ? pods_find(agent->pods, tenant->identity.pod_uid)
		       : NULL;
}

static struct tenant_spec decide_in_cluster(struct agent *agent, struct tenant *tenant,
					    struct level_decision *out)
{
	const struct pod *pod = pod_of(agent, tenant);
	struct level_input input = {.qos = tenant->identity.qos};
	struct tenant_spec spec = tenant_spec_unknown();

	tenant->pod_known |= pod != NULL;
	if (pod) {
		const struct pod_container *container =
			pod_container(pod, tenant->identity.container_id);
		name_from_pod(tenant, pod, container);
		spec = tenant_spec_of_pod(&agent->config.levels, pod, container);
		input = (struct level_input){.annotation = pod->priority,
					     .namespace_ = pod->namespace_,
					     .priority_class = pod->priority_class,
					     .qos = pod->qos ? pod->qos : tenant->identity.qos,
					     .known_pod = true};
	}
	level_decide(out, &agent->config.levels, &input);
	return spec;
}

static struct tenant_spec decide_standalone(const struct agent *agent, const struct tenant *tenant,
					    struct level_decision *out)
{
	return tenant_spec_of_rule(level_by_rule(out, &agent->config, &tenant->identity));
}

static void apply_level(struct agent *agent, struct tenant *tenant,
			const struct level_decision *decision)
{
	if (tenant->level == decision->level && strcmp(tenant->reason, decision->reason) == 0)
		return;

	bool other = tenant->level != decision->level;
	tenant->level = decision->level;
	memcpy(tenant->reason, decision->reason, sizeof(tenant->reason));
	log_line(decision->annotation_refused ? LOG_WARNING : LOG_INFO,
		 "namespace '%s', pod '%s', container '%s': level %s, %s", tenant->namespace_,
		 tenant->pod, tenant->container, config_level_name(decision->level),
		 decision->reason);
	if (other)
		session_tell_levels(agent, tenant);
}

/* A process that finds no agent is not to allocate from now on. */
static void mark_limited(struct agent *agent)
{
	if (!agent->limited)
		memories_mark(&agent->memories);
	if (!agent->limited)
		gpu_sockets_mark(&agent->gpu_sockets);
	agent->limited = true;
}

/* Whose container this is, for the log. */
#define WHOSE       "namespace '%s', pod '%s', container '%s': "
#define WHO(tenant) (tenant)->namespace_, (tenant)->pod, (tenant)->container

static void apply_slo(struct tenant *tenant, const struct tenant_spec *spec)
{
	if (strcmp(tenant->wanted_latency, spec->wanted_latency) != 0 && *spec->wanted_latency &&
	    !spec->slo)
		log_warning(WHOSE "latency objective refused: expected " OBJECTIVE_EXPECTED
				  ", not '%s'",
			    WHO(tenant), spec->wanted_latency);
	tenant->slo = spec->slo;
	snprintf(tenant->wanted_latency, sizeof(tenant->wanted_latency), "%s",
		 spec->wanted_latency);
}

static void apply_weight(struct tenant *tenant, const struct tenant_spec *spec)
{
	if (strcmp(tenant->wanted_weight, spec->wanted_weight) != 0 && spec->weight_refused)
		log_warning(WHOSE "weight '%s' refused: expected " WEIGHT_EXPECTED
				  ", above its share of %u only in levels.raiseNamespaces",
			    WHO(tenant), spec->wanted_weight, spec->weight);
	tenant->share = spec->weight;
	tenant->weight_refused = spec->weight_refused;
	snprintf(tenant->wanted_weight, sizeof(tenant->wanted_weight), "%s", spec->wanted_weight);
}

static void apply_spec(struct agent *agent, struct tenant *tenant, const struct tenant_spec *spec)
{
	struct client *client;

	if (tenant->share == spec->weight && tenant->slo == spec->slo &&
	    strcmp(tenant->wanted_latency, spec->wanted_latency) == 0 &&
	    strcmp(tenant->wanted_weight, spec->wanted_weight) == 0)
		return;
	apply_slo(tenant, spec);
	apply_weight(tenant, spec);
	for (client = tenant->clients; client; client = client->tenant_next)
		scheduler_change(&agent->scheduler, client->gpu);
}

static struct config_memory memory_default(const struct agent *agent, const struct gpu *gpu)
{
	const struct gpu_traits traits = {gpu->id, gpu->index, gpu->name};

	return config_for_gpu(&agent->config, &traits).memory;
}

uint64_t agent_memory_limit(const struct agent *agent, const struct tenant *tenant,
			    const struct gpu *gpu, bool *cut)
{
	struct config_memory by_default = memory_default(agent, gpu);
	bool less;

	return memory_spec_limit(&tenant->memory, &by_default, gpu->memory, cut ? cut : &less);
}

bool agent_limits(const struct agent *agent, const struct tenant *tenant)
{
	const struct gpu *gpu = agent->gpus.all;

	while (gpu && !agent_memory_limit(agent, tenant, gpu, NULL))
		gpu = gpu->hh.next;
	return gpu || tenant->memory.bytes;
}

static bool default_limits(const struct agent *agent)
{
	const struct gpu *gpu = agent->gpus.all;

	while (gpu && memory_default(agent, gpu).kind == MEMORY_NONE)
		gpu = gpu->hh.next;
	return gpu;
}

static bool rules_limit(const struct agent *agent)
{
	size_t i = 0;

	while (i < agent->config.n_rules && !agent->config.rules[i].memory)
		i++;
	return agent->standalone && i < agent->config.n_rules;
}

static bool pod_limits(const struct pod *pod)
{
	uint64_t bytes;

	return memory_parse(pod->memory, &bytes);
}

void agent_mark_limits(struct agent *agent)
{
	if (!agent->limited && (default_limits(agent) || rules_limit(agent) ||
				(agent->pods && pods_search(agent->pods, pod_limits))))
		mark_limited(agent);
}

static void say_memory(const struct tenant *tenant, const struct gpu *gpu, uint64_t reserved,
		       uint64_t limit)
{
	log_info(WHOSE "limit of memory on %s: %llu MiB%s", WHO(tenant), gpu->id,
		 (unsigned long long)(limit >> 20), limit ? "" : " (none)");
	if (limit && reserved > limit)
		log_warning(WHOSE
			    "has %llu MiB of %s, more than its limit: it keeps them, and gets "
			    "no more before it has freed some",
			    WHO(tenant), (unsigned long long)(reserved >> 20), gpu->id);
}

static void limit_memory(struct agent *agent, const struct tenant *tenant, const struct gpu *gpu)
{
	const struct memory *memory = memories_get(&agent->memories, tenant->key, gpu->id);
	bool cut;
	uint64_t limit = agent_memory_limit(agent, tenant, gpu, &cut);

	if (memory && memory_limit(memory) != limit) {
		memories_limit(&agent->memories, tenant->key, gpu->id, limit);
		say_memory(tenant, gpu, memory_reserved(memory), limit);
	}
	if (cut)
		log_limited(LOG_WARNING, 1,
			    WHOSE
			    "limit of memory '%s' refused: more than the default of %s, which "
			    "only namespaces of levels.raiseNamespaces may have",
			    WHO(tenant), tenant->wanted_memory, gpu->id);
}

/* Its words make no sense, and the limit before holds. */
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

void agent_apply_limits(struct agent *agent, struct tenant *tenant)
{
	struct client *client;

	if (!tenant->memory_known)
		return;
	if (agent_limits(agent, tenant))
		mark_limited(agent);
	for (struct gpu *gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		limit_memory(agent, tenant, gpu);
	for (client = tenant->clients; client; client = client->tenant_next)
		atomic_store(&client->pages.control->memory_limit,
			     agent_memory_limit(agent, tenant, client->gpu, NULL));
}

static void apply_memory(struct agent *agent, struct tenant *tenant, const struct tenant_spec *spec)
{
	struct memory_spec wanted = spec->memory;

	if (!spec->known)
		return;
	bool refused = refuse_memory(tenant, spec);
	if (refused)
		wanted.bytes = tenant->memory.bytes;
	if (tenant->memory_known && tenant->memory.bytes == wanted.bytes &&
	    tenant->memory.share == wanted.share && tenant->memory.may_raise == wanted.may_raise)
		return;
	tenant->memory = wanted;
	/* Of words that never made sense nothing is known but the default. */
	if (refused && !tenant->memory_known && !agent_limits(agent, tenant))
		return;
	tenant->memory_known = true;
	agent_apply_limits(agent, tenant);
}

/* Deleted by force, it is unknown to the API server while the kubelet has yet to end it: what was
 * said of it holds until its processes are gone. */
static bool outlives_pod(const struct agent *agent, const struct tenant *tenant)
{
	return tenant->pod_known && !pod_of(agent, tenant);
}

void agent_decide(struct agent *agent, struct tenant *tenant)
{
	struct level_decision decision = {0};

	if (outlives_pod(agent, tenant))
		return;
	struct tenant_spec spec = agent->standalone ? decide_standalone(agent, tenant, &decision)
						    : decide_in_cluster(agent, tenant, &decision);

	apply_level(agent, tenant, &decision);
	apply_spec(agent, tenant, &spec);
	apply_memory(agent, tenant, &spec);
}

static void pods_changed(void *userdata)
{
	struct agent *agent = userdata;
	struct tenant *tenant, *next;

	agent->pods_known |= pods_connected(agent->pods);
	agent_mark_limits(agent);
	for (tenant = agent->tenants.all; tenant; tenant = next) {
		next = tenant->hh.next;
		/* Processes with memory need not be connected. */
		if (tenant->n_sessions > 0 || pod_of(agent, tenant))
			agent_decide(agent, tenant);
		else if (tenant->identity.in_pod && pods_connected(agent->pods))
			tenants_forget(&agent->tenants, tenant);
	}
	sessions_answer(agent);
}

static void read_memory(struct agent *agent, const struct tenant *tenant, struct usage *usage)
{
	const struct memory *memory = memories_get(&agent->memories, tenant->key, usage->gpu->id);

	usage->memory_limit = agent_memory_limit(agent, tenant, usage->gpu, &usage->memory_cut);
	usage->memory_reserved = 0;
	if (!memory)
		return;
	usage->memory_limit = memory_limit(memory);
	usage->memory_reserved = memory_reserved(memory);
}

void agent_read_memory(struct agent *agent)
{
	struct tenant *tenant;
	struct usage *usage;

	for (tenant = agent->tenants.all; tenant; tenant = tenant->hh.next)
		for (usage = tenant->usages; usage; usage = usage->next)
			read_memory(agent, tenant, usage);
}

const char *agent_condition(const struct agent *agent, bool *ready)
{
	bool connected = agent->pods && pods_connected(agent->pods);

	*ready = false;
	if (!agent->clients.io.loop)
		return "not ready: no socket for clients";
	if (agent->gpus.n == 0)
		return agent->gpus.listed ? "not ready: NVML lists no GPU"
					  : "not ready: no NVML, and no client with a GPU yet";
	if (agent->pods && !agent->pods_known && !connected)
		return "not ready: the API server has not told of this node's pods yet";
	if (agent->config.mps.required && !mps_complete(&agent->mps))
		return "not ready: an MPS daemon does not answer";
	*ready = true;
	return agent->pods && !connected
		       ? "ok, but the API server is away: new pods' levels come from QoS classes"
		       : "ok";
}

static void signalled(struct loop_signals *signals, int number)
{
	if (number == SIGHUP) {
		reload_now(&container_of(signals, struct agent, signals)->reload);
		return;
	}
	log_info("%s: stopping; clients go on by themselves", strsignal(number));
	loop_stop(signals->io.loop);
}

/* Each client takes two descriptors, its slot of memory one, and its container's account four; and
 * each request to compile two. */
void agent_raise_limits(const struct agent *agent)
{
	struct rlimit limit;
	unsigned clients = agent->config.clients;
	rlim_t wanted = 7 * (rlim_t)clients + 2 * COMPILE_REQUESTS_MAX + 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	struct rlimit raised = {wanted, limit.rlim_max < wanted ? wanted : limit.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		return;
	/* Only some may raise what they were given at most. */
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	log_warning("open files are limited to %llu: fewer than %u clients will find room",
		    (unsigned long long)limit.rlim_max, clients);
}

static int init_kubernetes(struct agent *agent)
{
	if (agent->standalone || !agent->config.kubernetes.enabled)
		return 0;
	return pods_new(&agent->pods, &agent->loop, &agent->config.kubernetes, pods_changed, agent);
}

static int init_compile(struct agent *agent)
{
	const struct config *config = &agent->config;
	char cache[PATH_MAX];

	if (*config->compile.cache_dir)
		snprintf(cache, sizeof(cache), "%s", config->compile.cache_dir);
	else
		snprintf(cache, sizeof(cache), "%s/cache", config->state_dir);
	return compile_init(&agent->compile, &agent->loop, &config->compile, cache,
			    gpus_take_machine_code(&agent->gpus));
}

static int init_parts(struct agent *agent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	const struct config *config = &agent->config;

	int r = loop_init(&agent->loop);
	if (r == 0)
		r = loop_signals_init(&agent->signals, &agent->loop, numbers, countof(numbers),
				      signalled);
	if (r == 0)
		r = gpus_init(&agent->gpus, &agent->loop, config->state_dir, config->nvml);
	if (r == 0)
		r = memories_init(&agent->memories, &agent->loop, &agent->gpus.root, config->socket,
				  config->clients);
	if (r == 0)
		r = scheduler_init(&agent->scheduler, &agent->loop, config->gpu.policy,
				   &config->gpu.scheduling, &agent->gpus.all);
	if (r == 0)
		r = mps_init(&agent->mps, &agent->loop, &config->mps);
	for (struct gpu *gpu = agent->gpus.all; r == 0 && gpu; gpu = gpu->hh.next)
		agent_configure_gpu(agent, gpu);
	if (r == 0)
		r = init_compile(agent);
	if (r == 0)
		r = init_kubernetes(agent);
	if (r == 0)
		r = report_init(agent);
	if (r == 0)
		r = http_new(&agent->http, agent);
	if (r == 0)
		r = control_init(agent);
	if (r == 0)
		r = sessions_init(agent);
	return r;
}

int agent_init(struct agent *agent, struct config *config, bool standalone)
{
	*agent = (struct agent){.config = *config, .standalone = standalone};
	*config = (struct config){0};
	agent->loop.epoll = -1;
	agent->gpus.root = (struct folder){-1, -1};
	agent->compile = COMPILE_NONE;
	agent_raise_limits(agent);
	signal(SIGPIPE, SIG_IGN);
	int r = init_parts(agent);
	if (r < 0) {
		agent_deinit(agent);
		return r;
	}
	agent_mark_limits(agent);
	/* Until the pods are known again, any of them may have a limit. */
	if (memories_marked(&agent->memories))
		mark_limited(agent);
	log_info("weir-agent " WEIR_VERSION ": clients at %s, policy %s%s", agent->config.socket,
		 agent->config.gpu.policy->name, standalone ? ", standalone" : "");
	return 0;
}

int agent_follow(struct agent *agent, const char *path)
{
	return reload_init(&agent->reload, agent, path);
}

int agent_run(struct agent *agent)
{
	return loop_run(&agent->loop);
}

void agent_deinit(struct agent *agent)
{
	sessions_deinit(agent);
	control_deinit(agent);
	http_free(take(agent->http));
	report_deinit(agent);
	pods_free(take(agent->pods));
	compile_deinit(&agent->compile);
	reload_deinit(&agent->reload);
	mps_deinit(&agent->mps);
	scheduler_deinit(&agent->scheduler);
	memories_deinit(&agent->memories);
	tenants_deinit(&agent->tenants);
	gpus_deinit(&agent->gpus);
	loop_signals_deinit(&agent->signals);
	loop_deinit(&agent->loop);
	config_deinit(&agent->config);
}
