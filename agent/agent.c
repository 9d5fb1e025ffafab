#include "agent.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "control.h"
#include "http.h"
#include "level.h"
#include "quantity.h"
#include "rules.h"
#include "session.h"

#include "weir/base.h"
#include "weir/log.h"

/* What a tenant is to have, beside its level. */
struct terms {
	uint32_t share; /* 0: nobody says */
	uint64_t slo;
	const char *wanted; /* the objective's words */
	uint64_t memory;    /* limit on each GPU; 0: none */
	const char *wanted_memory;
	bool known; /* else what was known of memory holds */
};

static void name_from_pod(struct tenant *tenant, const struct pod *pod,
			  const struct pod_container *container)
{
	snprintf(tenant->namespace_, sizeof(tenant->namespace_), "%s", pod->namespace_);
	snprintf(tenant->pod, sizeof(tenant->pod), "%s", pod->name);
	if (container)
		snprintf(tenant->container, sizeof(tenant->container), "%s", container->name);
}

static struct terms terms_from_pod(const struct pod *pod, const struct pod_container *container)
{
	struct terms terms = {.share = container ? container->share : 0,
			      .wanted = pod->latency_slo,
			      .wanted_memory = pod->memory,
			      .known = true};

	if (!objective_parse(terms.wanted, &terms.slo))
		terms.slo = 0;
	if (!quantity_parse(terms.wanted_memory, &terms.memory))
		terms.memory = 0;
	return terms;
}

static struct terms decide_in_cluster(struct agent *agent, struct tenant *tenant,
				      struct level_decision *out)
{
	const struct pod *pod = NULL;
	struct level_input input = {.qos = tenant->identity.qos};
	struct terms terms = {.wanted = "", .wanted_memory = ""};

	if (agent->pods && tenant->identity.in_pod)
		pod = pods_find(agent->pods, tenant->identity.pod_uid);
	if (pod) {
		const struct pod_container *container =
			pod_container(pod, tenant->identity.container_id);
		name_from_pod(tenant, pod, container);
		terms = terms_from_pod(pod, container);
		input = (struct level_input){.annotation = pod->priority,
					     .namespace_ = pod->namespace_,
					     .priority_class = pod->priority_class,
					     .qos = pod->qos ? pod->qos : tenant->identity.qos,
					     .known_pod = true};
	}
	level_decide(out, &agent->config.levels, &input);
	return terms;
}

static struct terms decide_standalone(const struct agent *agent, const struct tenant *tenant,
				      struct level_decision *out)
{
	const struct config_rule *rule = rules_decide(out, &agent->config, &tenant->identity);

	if (!rule)
		return (struct terms){.wanted = "", .wanted_memory = "", .known = true};
	return (struct terms){.share = rule->share,
			      .slo = rule->latency_slo,
			      .wanted = rule->latency_slo ? "of its rule" : "",
			      .memory = rule->memory,
			      .wanted_memory = rule->memory ? "of its rule" : "",
			      .known = true};
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

static void apply_terms(struct agent *agent, struct tenant *tenant, const struct terms *terms)
{
	uint32_t share = terms->share ? terms->share : 100;
	bool same_words = strcmp(tenant->wanted_latency, terms->wanted) == 0;
	struct client *client;

	if (tenant->share == share && tenant->slo == terms->slo && same_words)
		return;
	if (!same_words && *terms->wanted && !terms->slo)
		log_warning("namespace '%s', pod '%s', container '%s': latency objective refused: "
			    "expected " OBJECTIVE_EXPECTED ", not '%s'",
			    tenant->namespace_, tenant->pod, tenant->container, terms->wanted);
	tenant->share = share;
	tenant->slo = terms->slo;
	snprintf(tenant->wanted_latency, sizeof(tenant->wanted_latency), "%s", terms->wanted);
	for (client = tenant->clients; client; client = client->tenant_next)
		scheduler_change(&agent->scheduler, client->gpu);
}

/* A limit that makes no sense is refused, and the one before holds. */
static void apply_memory(struct agent *agent, struct tenant *tenant, const struct terms *terms)
{
	bool same_words = strcmp(tenant->wanted_memory, terms->wanted_memory) == 0;
	bool refused = *terms->wanted_memory && !terms->memory;
	struct client *client;

	if (!terms->known ||
	    (same_words && (refused || (tenant->memory_known && tenant->memory == terms->memory))))
		return;
	snprintf(tenant->wanted_memory, sizeof(tenant->wanted_memory), "%s", terms->wanted_memory);
	if (refused) {
		log_warning("namespace '%s', pod '%s', container '%s': limit of memory refused: "
			    "expected " QUANTITY_EXPECTED ", not '%s'",
			    tenant->namespace_, tenant->pod, tenant->container,
			    terms->wanted_memory);
		return;
	}
	if (tenant->memory || terms->memory)
		log_info("namespace '%s', pod '%s', container '%s': limit of memory %llu MiB%s",
			 tenant->namespace_, tenant->pod, tenant->container,
			 (unsigned long long)(terms->memory >> 20), terms->memory ? "" : " (none)");
	tenant->memory = terms->memory;
	tenant->memory_known = true;
	memories_limit(&agent->memories, tenant->key, tenant->memory);
	if (tenant->memory && !agent->limited)
		memories_mark(&agent->memories);
	agent->limited |= tenant->memory > 0;
	for (client = tenant->clients; client; client = client->tenant_next)
		atomic_store(&client->pages.control->memory_limit, tenant->memory);
}

void agent_decide(struct agent *agent, struct tenant *tenant)
{
	struct level_decision decision = {0};
	struct terms terms = agent->standalone ? decide_standalone(agent, tenant, &decision)
					       : decide_in_cluster(agent, tenant, &decision);

	apply_level(agent, tenant, &decision);
	apply_terms(agent, tenant, &terms);
	apply_memory(agent, tenant, &terms);
}

static void pods_changed(void *userdata)
{
	struct agent *agent = userdata;
	struct tenant *tenant, *next;

	for (tenant = agent->tenants.all; tenant; tenant = next) {
		next = tenant->hh.next;
		if (tenant->n_sessions > 0)
			agent_decide(agent, tenant);
		else if (tenant->identity.in_pod && pods_connected(agent->pods) &&
			 !pods_find(agent->pods, tenant->identity.pod_uid))
			tenants_forget(&agent->tenants, tenant);
	}
	sessions_answer(agent);
}

void agent_read_memory(struct agent *agent)
{
	struct tenant *tenant;
	struct usage *usage;

	for (tenant = agent->tenants.all; tenant; tenant = tenant->hh.next) {
		for (usage = tenant->usages; usage; usage = usage->next) {
			const struct memory *memory =
				memories_get(&agent->memories, tenant->key, usage->gpu->id);
			usage->memory_limit = memory ? memory_limit(memory) : tenant->memory;
			usage->memory_reserved = memory ? memory_reserved(memory) : 0;
		}
	}
}

const char *agent_condition(const struct agent *agent)
{
	return agent->pods && !pods_connected(agent->pods)
		       ? "ok, but the API server is away: new pods' levels come from QoS classes"
		       : "ok";
}

static void stop(struct loop_signals *signals, int number)
{
	log_info("%s: stopping; clients go on by themselves", strsignal(number));
	loop_stop(signals->io.loop);
}

/* Each client takes two descriptors, its slot of memory one, and its container's account four; and
 * each request to compile two. */
static void raise_limits(const struct config *config)
{
	struct rlimit limit;
	rlim_t wanted = 7 * (rlim_t)config->clients + 2 * COMPILE_REQUESTS_MAX + 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("open files are limited: fewer than %u clients will find room",
			    config->clients);
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
	static const int numbers[] = {SIGTERM, SIGINT};
	const struct config *config = &agent->config;

	int r = loop_init(&agent->loop);
	if (r == 0)
		r = loop_signals_init(&agent->signals, &agent->loop, numbers, countof(numbers),
				      stop);
	if (r == 0)
		r = gpus_init(&agent->gpus, &agent->loop, config->state_dir, config->nvml);
	if (r == 0)
		r = memories_init(&agent->memories, &agent->loop, &agent->gpus.root, config->socket,
				  config->clients);
	if (r == 0)
		r = scheduler_init(&agent->scheduler, &agent->loop, policy_find(config->policy),
				   &config->scheduling, &agent->gpus.all);
	if (r == 0)
		r = init_compile(agent);
	if (r == 0)
		r = init_kubernetes(agent);
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
	raise_limits(&agent->config);
	signal(SIGPIPE, SIG_IGN);
	int r = init_parts(agent);
	if (r < 0) {
		agent_deinit(agent);
		return r;
	}
	log_info("weir-agent " WEIR_VERSION ": clients at %s, policy %s%s", agent->config.socket,
		 agent->config.policy, standalone ? ", standalone" : "");
	return 0;
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
	pods_free(take(agent->pods));
	compile_deinit(&agent->compile);
	scheduler_deinit(&agent->scheduler);
	memories_deinit(&agent->memories);
	tenants_deinit(&agent->tenants);
	gpus_deinit(&agent->gpus);
	loop_signals_deinit(&agent->signals);
	loop_deinit(&agent->loop);
	config_deinit(&agent->config);
}
