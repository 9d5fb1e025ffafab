#include "daemon/agent.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "metrics/metrics.h"
#include "reports/ending.h"
#include "scheduler/preemption.h"

#include "weir/base.h"
#include "weir/log.h"

static void signalled(struct loop_signals *signals, int number)
{
	if (number == SIGHUP) {
		reload_now(&container_of(signals, struct agent, signals)->reload);
		return;
	}
	log_info("%s: stopping; clients go on by themselves", strsignal(number));
	loop_stop(signals->io.loop);
}

/* Descriptors: two for a client, one for its channel group, one for its memory slot, four for its
 * container's account, two for a compile request. */
static void raise_limits(const struct agent *agent)
{
	struct rlimit limit;
	unsigned clients = agent->config.clients;
	rlim_t wanted = 8 * (rlim_t)clients + 2 * COMPILE_REQUESTS_MAX + 1024;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	struct rlimit raised = {wanted, limit.rlim_max < wanted ? wanted : limit.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		return;
	/* Raising the hard limit takes a privilege. */
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	log_warning("open files are limited to %llu: fewer than %u clients will find room",
		    (unsigned long long)limit.rlim_max, clients);
}

static void hardware_known(struct self_test *test)
{
	struct gpu *gpu = container_of(test, struct gpu, self_test);

	if (gpu->clients)
		scheduler_change(gpu->scheduler, gpu);
}

static void try_hardware(struct agent *agent, struct gpu *gpu,
			 const struct config_gpu_settings *settings)
{
	const char *libraries = *agent->gpus.libraries ? agent->gpus.libraries : NULL;

	if (!settings->hardware)
		self_test_off(&gpu->self_test, "off by the configuration");
	else if (settings->mode == GPU_MODE_MPS)
		self_test_off(&gpu->self_test, "in mode mps all clients share a channel group");
	else if (gpu->open)
		self_test_begin(&gpu->self_test, &agent->loop, &agent->gpus.root, gpu->id,
				libraries, hardware_known);
	preemption_set_slices(gpu);
}

static void end_disobedient(struct gpu *gpu)
{
	struct agent *agent = container_of(gpu->scheduler, struct agent, scheduler);

	ending_look(gpu, &agent->mps);
}

/* Puts the configuration in force on @gpu; does nothing if it is already. */
static void configure_gpu(struct agent *agent, struct gpu *gpu)
{
	struct config_gpu_settings settings = gpu_settings(&agent->config, gpu);

	scheduler_configure(&agent->scheduler, gpu, settings.policy, &settings.scheduling);
	mps_want(&agent->mps, gpu->id, settings.mode == GPU_MODE_MPS);
	mps_allow_levels(&agent->mps, gpu, settings.mode == GPU_MODE_MPS_PER_LEVEL);
	gpu->use.nvml = agent->config.nvml;
	gpu->use.id = gpu->id;
	gpu->end_disobedient =
		agent->config.disobedience == DISOBEDIENCE_KILL ? end_disobedient : NULL;
	try_hardware(agent, gpu, &settings);
}

static void new_gpu(struct sessions *sessions, struct gpu *gpu)
{
	configure_gpu(container_of(sessions, struct agent, sessions), gpu);
}

static void apply_config(struct reload *reload)
{
	struct agent *agent = container_of(reload, struct agent, reload);
	const struct config *config = &agent->config;

	if (!getenv("WEIR_LOG"))
		log_set_level(config->log_level);
	agent->memories.max = config->clients;
	agent->memories.max_of_container = config->clients_per_container;
	raise_limits(agent);
	scheduler_take(&agent->scheduler, config->gpu.policy, &config->gpu.scheduling);
	for (struct gpu *gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		configure_gpu(agent, gpu);
	pipes_link(&agent->pipes);
	decider_mark_limits(&agent->decider);
	/* All tenants: processes with memory need not be connected. */
	for (struct tenant *tenant = agent->tenants.all; tenant; tenant = tenant->hh.next) {
		sessions_decide(&agent->sessions, tenant);
		decider_apply_limits(&agent->decider, tenant);
	}
	report_pods_changed(&agent->report);
}

static void config_refused(struct reload *reload)
{
	const struct agent *agent = container_of(reload, struct agent, reload);

	events_tell(agent->report.events, NULL, EVENT_WARNING, "ConfigurationRefused",
		    "%s; the configuration from before stays in force", reload->mistake);
}

static void pods_changed(void *userdata)
{
	struct agent *agent = userdata;
	struct tenant *tenant, *next;

	agent->decider.pods_known |= pods_connected(agent->pods);
	decider_mark_limits(&agent->decider);
	for (tenant = agent->tenants.all; tenant; tenant = next) {
		next = tenant->hh.next;
		/* Processes with memory need not be connected. */
		if (tenant->n_sessions > 0 || decider_pod(&agent->decider, tenant))
			sessions_decide(&agent->sessions, tenant);
		else if (tenant->identity.in_pod && pods_connected(agent->pods))
			tenants_forget(&agent->tenants, tenant);
	}
	decider_share_memory(&agent->decider);
	sessions_news(&agent->sessions);
	report_pods_changed(&agent->report);
}

static void mps_up(struct mps *mps, struct mps_daemon *daemon)
{
	struct agent *agent = container_of(mps, struct agent, mps);

	pipes_daemon_up(&agent->pipes, daemon);
	sessions_news(&agent->sessions);
}

static void mps_looked(struct mps *mps, struct mps_daemon *daemon)
{
	pipes_daemon_looked(&container_of(mps, struct agent, mps)->pipes, daemon);
}

static int write_metrics(void *userdata, FILE *out)
{
	struct agent *agent = userdata;
	struct metrics_input input = {
		.tenants = &agent->tenants,
		.gpus = agent->gpus.all,
		.policy = agent->scheduler.policy->name,
		.timers = agent->scheduler.timers,
		.kubernetes = agent->pods != NULL,
		.connected = agent->pods && pods_connected(agent->pods),
	};

	tenants_prune(&agent->tenants, loop_now());
	decider_read_memory(&agent->decider);
	int r = metrics_write(out, &input);
	if (r < 0)
		return r;
	hardware_metrics_write(out, agent->gpus.all);
	process_metrics_write(out);
	compile_metrics_write(out, &agent->compile);
	profile_metrics_write(out, &agent->profiles);
	mps_metrics_write(out, &agent->mps);
	reload_metrics_write(out, &agent->reload);
	sessions_metrics_write(out, &agent->sessions);
	report_metrics(out, &agent->report);
	return 0;
}

/* Ready: clients can connect, there is a GPU, the pods of the node were listed once, and MPS
 * daemons answer where the configuration requires them. If the API server goes away later, the
 * agent goes on and decides levels by QoS class. */
static const char *condition(void *userdata, bool *ready)
{
	struct agent *agent = userdata;
	bool connected = agent->pods && pods_connected(agent->pods);

	*ready = false;
	if (!agent->sessions.server.io.loop)
		return "not ready: no socket for clients";
	if (agent->gpus.n == 0)
		return agent->gpus.listed ? "not ready: NVML lists no GPU"
					  : "not ready: no NVML, and no client with a GPU yet";
	if (agent->pods && !agent->decider.pods_known && !connected)
		return "not ready: the API server has not told of this node's pods yet";
	if (agent->config.mps.required && !mps_complete(&agent->mps))
		return "not ready: an MPS daemon does not answer";
	*ready = true;
	return agent->pods && !connected
		       ? "ok, but the API server is away: new pods' levels come from QoS classes"
		       : "ok";
}

/* Beside the compiled kernels: clients without a compile service have nothing to learn. */
static int init_profiles(struct agent *agent, const char *cache)
{
	char path[PATH_MAX];

	agent->profiles.on = agent->compile.on;
	agent->profiles.standalone = agent->standalone;
	if (!agent->profiles.on)
		return 0;
	snprintf(path, sizeof(path), "%s/" CACHE_NEIGHBOUR, cache);
	return profile_file_init(&agent->profiles.file, &agent->loop, &agent->profiles.profiles,
				 path);
}

static int init_coexec_file(struct agent *agent)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" COEXEC_FILE_NAME, agent->config.state_dir);
	return coexec_file_init(&agent->coexec_file, &agent->loop, &agent->scheduler.memory, path);
}

static int init_compile(struct agent *agent)
{
	const struct config *config = &agent->config;
	char cache[PATH_MAX - sizeof("/" CACHE_NEIGHBOUR)];

	if (*config->compile.cache_dir)
		snprintf(cache, sizeof(cache), "%s", config->compile.cache_dir);
	else
		snprintf(cache, sizeof(cache), "%s/cache", config->state_dir);
	int r = compile_init(&agent->compile, &agent->loop, &config->compile, cache,
			     gpus_take_machine_code(&agent->gpus));
	return r < 0 ? r : init_profiles(agent, cache);
}

/* The objects that only point to others. */
static void connect_parts(struct agent *agent)
{
	agent->decider = (struct decider){.config = &agent->config,
					  .standalone = agent->standalone,
					  .pods = agent->pods,
					  .gpus = &agent->gpus,
					  .tenants = &agent->tenants,
					  .scheduler = &agent->scheduler,
					  .memories = &agent->memories,
					  .gpu_sockets = &agent->sessions.gpu_sockets};
	agent->sessions = (struct sessions){.loop = &agent->loop,
					    .config = &agent->config,
					    .decider = &agent->decider,
					    .gpus = &agent->gpus,
					    .tenants = &agent->tenants,
					    .memories = &agent->memories,
					    .scheduler = &agent->scheduler,
					    .compile = &agent->compile,
					    .profiles = &agent->profiles,
					    .pipes = &agent->pipes,
					    .new_gpu = new_gpu};
	agent->report = (struct report){.config = &agent->config,
					.gpus = &agent->gpus,
					.tenants = &agent->tenants,
					.mps = &agent->mps,
					.pods = agent->pods};
	agent->pipes = (struct pipes){.config = &agent->config,
				      .mps = &agent->mps,
				      .gpus = &agent->gpus,
				      .pods = agent->pods,
				      .sockets = &agent->sessions.gpu_sockets};
	agent->commands = (struct commands){.decider = &agent->decider,
					    .mps = &agent->mps,
					    .monitor = &agent->report.monitor,
					    .problems = &agent->report.problems,
					    .reload = &agent->reload,
					    .report = &agent->report,
					    .profiles = &agent->profiles};
	agent->pages = (struct http_pages){
		.metrics = write_metrics, .condition = condition, .userdata = agent};
}

static int init_parts(struct agent *agent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	static const struct mps_listener listener = {.up = mps_up, .looked = mps_looked};
	const struct config *config = &agent->config;

	int r = loop_init(&agent->loop);
	if (r == 0)
		r = loop_signals_init(&agent->signals, &agent->loop, numbers, countof(numbers),
				      signalled);
	if (r == 0)
		r = gpus_init(&agent->gpus, &agent->loop, config->state_dir, config->nvml);
	if (r == 0)
		r = memories_init(&agent->memories, &agent->loop, &agent->gpus.root, config->socket,
				  config->clients, config->clients_per_container);
	if (r == 0)
		r = scheduler_init(&agent->scheduler, &agent->loop, config->gpu.policy,
				   &config->gpu.scheduling, &agent->gpus.all);
	if (r == 0)
		r = init_coexec_file(agent);
	if (r == 0)
		r = mps_init(&agent->mps, &agent->loop, &config->mps);
	for (struct gpu *gpu = agent->gpus.all; r == 0 && gpu; gpu = gpu->hh.next)
		configure_gpu(agent, gpu);
	if (r == 0)
		r = init_compile(agent);
	if (r == 0 && !agent->standalone && config->kubernetes.enabled)
		r = pods_new(&agent->pods, &agent->loop, &config->kubernetes, pods_changed, agent);
	connect_parts(agent);
	if (r == 0)
		r = report_init(&agent->report, &agent->loop, agent->standalone);
	if (r == 0)
		r = http_new(&agent->http, &agent->loop, config->metrics_address, &agent->pages);
	if (r == 0)
		r = control_init(&agent->control, &agent->loop, config->control_socket,
				 &agent->commands);
	if (r == 0)
		r = sessions_init(&agent->sessions);
	if (r < 0)
		return r;
	/* Reading the compile cache may have taken longer than the wait for claims. */
	for (struct gpu *gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		gpu_await_claims(gpu);
	agent->pipes.events = agent->report.events;
	agent->mps.listener = &listener;
	pipes_link(&agent->pipes);
	return 0;
}

int agent_init(struct agent *agent, struct config *config, bool standalone)
{
	*agent = (struct agent){.config = *config, .standalone = standalone};
	*config = (struct config){0};
	agent->loop.epoll = -1;
	agent->gpus = GPUS_NONE;
	agent->compile = COMPILE_NONE;
	raise_limits(agent);
	signal(SIGPIPE, SIG_IGN);
	int r = init_parts(agent);
	if (r < 0) {
		agent_deinit(agent);
		return r;
	}
	decider_mark_limits(&agent->decider);
	/* Until the pods are known, any of them may have a limit if an earlier agent marked the
	 * node. */
	if (memories_marked(&agent->memories))
		decider_mark(&agent->decider);
	log_info("weir-agent " WEIR_VERSION ": clients at %s, policy %s%s", agent->config.socket,
		 agent->config.gpu.policy->name, standalone ? ", standalone" : "");
	return 0;
}

int agent_follow(struct agent *agent, const char *path)
{
	return reload_init(&agent->reload, &agent->loop, &agent->config, path, apply_config,
			   config_refused);
}

void agent_deinit(struct agent *agent)
{
	sessions_deinit(&agent->sessions);
	control_deinit(&agent->control);
	http_free(take(agent->http));
	report_deinit(&agent->report);
	pods_free(take(agent->pods));
	compile_deinit(&agent->compile);
	profile_file_deinit(&agent->profiles.file);
	coexec_file_deinit(&agent->coexec_file);
	profiles_deinit(&agent->profiles.profiles);
	reload_deinit(&agent->reload);
	mps_deinit(&agent->mps);
	pipes_deinit(&agent->pipes);
	scheduler_deinit(&agent->scheduler);
	memories_deinit(&agent->memories);
	tenants_deinit(&agent->tenants);
	gpus_deinit(&agent->gpus);
	loop_signals_deinit(&agent->signals);
	loop_deinit(&agent->loop);
	config_deinit(&agent->config);
}
