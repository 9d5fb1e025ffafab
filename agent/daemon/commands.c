#include "daemon/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "config/config.h"
#include "daemon/explain.h"
#include "daemon/reload.h"
#include "mps/mps-server.h"
#include "profile/profile-command.h"
#include "policy/yield.h"
#include "reports/overrun.h"
#include "scheduler/preemption.h"
#include "scheduler/sms.h"
#include "scheduler/workers.h"

#include "weir/base.h"
#include "weir/log.h"

/* Status */

static void add_number(cJSON *object, const char *name, uint64_t value)
{
	cJSON_AddNumberToObject(object, name, (double)value);
}

static void add_text(cJSON *object, const char *name, const char *text)
{
	cleanup(freep) char *mended = strdup(text);

	if (mended) {
		text_mend(mended);
		cJSON_AddStringToObject(object, name, mended);
	}
}

static void add_seconds(cJSON *object, const char *name, uint64_t ns)
{
	cJSON_AddNumberToObject(object, name, (double)ns / 1e9);
}

static const char *state_of(const struct client *client)
{
	const struct weir_control_page *control = client->pages.control;
	uint64_t demand = 0;

	if (client->account.outstanding == 0)
		return "idle";
	if (client->over_limit)
		return "limited";
	if (overrun_is_told(client))
		return "overruns";
	if (client->level < WEIR_DEMAND_LEVELS)
		demand = atomic_load(&client->gpu->region.pages[client->level].demand->word);
	return demand || atomic_load(&control->hold) || client->channels.stopped ? "held"
										 : "running";
}

static void describe_objective(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (*tenant->wanted_latency && !tenant->slo)
		add_text(object, "latencySloRefused", tenant->wanted_latency);
	if (!tenant->slo || !usage)
		return;
	add_seconds(object, "latencySloSeconds", tenant->slo);
	add_number(object, "starts", usage->objective.starts);
	add_number(object, "startsLate", usage->objective.late);
	cJSON_AddBoolToObject(object, "latencySloMissed", usage->objective.missed);
}

/* Mean error relative to the measured time; cost of a switch that the policy assumes. */
static void describe_predictions(cJSON *object, const struct client *client)
{
	const uint64_t *total = client->account.own.total;
	double n = (double)total[ACCOUNT_PREDICTIONS];

	add_number(object, "predictions", total[ACCOUNT_PREDICTIONS]);
	if (n > 0)
		cJSON_AddNumberToObject(object, "predictionError",
					(double)total[ACCOUNT_PREDICTION_ERROR] / 1e6 / n);
	if (client->entry.cost)
		add_seconds(object, "switchSeconds", client->entry.cost);
}

/* Reported by the client; told to the client. */
static void describe_blocking(cJSON *object, const struct client *client)
{
	uint64_t burst = atomic_load(&client->pages.status->busy_period);
	uint32_t patience = atomic_load(&client->pages.control->max_blocking_time);

	if (burst)
		add_seconds(object, "busyPeriodSeconds", burst);
	if (patience)
		add_seconds(object, "maxBlockingSeconds", patience);
}

/* Of the whole container on this GPU. */
static void describe_channels(cJSON *object, const struct client *client)
{
	const struct channels_client *channels = &client->channels;

	bool used = channels->usable && client->gpu->self_test.state == SELF_TEST_WORKS;

	cJSON_AddBoolToObject(object, "hardwarePreemption", used);
	if (used)
		add_number(object, "sliceMicroseconds",
			   channels->slice ? channels->slice : CHANNELS_DEFAULT_SLICE);
	if (channels->stopped)
		cJSON_AddTrueToObject(object, "stopped");
	if (channels->disobeyed)
		add_number(object, "slicesChanged", channels->disobeyed);
}

/* Of the whole container on this GPU. */
static void describe_compute(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (*tenant->wanted_compute && !tenant->compute_limit)
		add_text(object, "computeLimitRefused", tenant->wanted_compute);
	if (!tenant->compute_limit || !usage)
		return;
	add_number(object, "computeLimit", tenant->compute_limit);
	add_text(object, "computeLimitBy", preemption_works(client) ? "hardware" : "gates");
	add_seconds(object, "computeSeconds", usage->limit.used);
	add_seconds(object, "computeThrottledSeconds", usage->limit.throttled);
}

/* SMs: only where clients run at the same time. */
static void describe_yield(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	uint64_t needed = sms_needed(client), left = sms_left(client);
	char text[YIELD_TEXT_MAX];

	if (tenant->yield_refused)
		add_text(object, "yieldRefused", tenant->wanted_yield);
	add_text(object, "yield", yield_format(tenant->yield, text));
	add_text(object, "yieldNow",
		 yield_format(yield_trial_now(&client->yield_trial, client->yield), text));
	if (client->yield_trial.slower > 0)
		cJSON_AddNumberToObject(object, "yieldSlower", client->yield_trial.slower);
	if (needed != SMS_UNKNOWN)
		add_number(object, "smsNeeded", needed);
	if (left != SMS_UNKNOWN)
		add_number(object, "smsLeft", left);
	cJSON_AddBoolToObject(object, "leavesPart",
			      atomic_load(&client->pages.control->flags) & WEIR_CONTROL_SPATIAL);
}

/* Of its latest kernel: how many blocks an SM holds, and what of an SM one takes; and how many it
 * may have. */
static void describe_workers(cJSON *object, const struct client *client)
{
	uint32_t fit = workers_fit(client), bound = atomic_load(&client->pages.control->workers);
	cJSON *parts = fit ? cJSON_AddArrayToObject(object, "workerParts") : NULL;

	if (fit)
		add_number(object, "workersFit", fit);
	for (size_t i = 0; parts && i < WEIR_SM_RESOURCES; i++)
		cJSON_AddItemToArray(
			parts, cJSON_CreateNumber(
				       (double)atomic_load(&client->pages.status->worker_parts[i]) /
				       WEIR_SM_PARTS));
	if (bound)
		add_number(object, "workers", bound);
}

/* `loop` is for people: where they are, and what their callbacks wait for. */
static void describe_loops(cJSON *object, const struct client *client)
{
	static const char *const kinds[] = {"files", "network", "timers", "host"};
	const struct account_reader *account = &client->account;
	const uint64_t *total = account->own.total;
	cJSON *waits = account->loops ? cJSON_AddObjectToObject(object, "loopsWaitFor") : NULL;
	char text[128];
	int at;

	if (!waits)
		return;
	add_number(object, "loops", account->loops);
	add_number(object, "loopsOnGpu", account->loops_on_gpu);
	at = snprintf(text, sizeof(text), "%s", account->loops_on_gpu ? "on GPU" : "blocked");
	for (size_t i = 0; i < countof(kinds); i++) {
		add_number(waits, kinds[i], account->loops_waiting[i]);
		if (account->loops_waiting[i])
			at += snprintf(text + at, sizeof(text) - (size_t)at, " %s:%u", kinds[i],
				       account->loops_waiting[i]);
	}
	add_text(object, "loop", text);
	add_number(object, "loopsBlocked", total[ACCOUNT_LOOPS_BLOCKED]);
	add_seconds(object, "loopsBlockedSeconds", total[ACCOUNT_LOOPS_BLOCKED_TIME]);
}

/* Of the whole container on this GPU. */
static void describe_min_rate(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (*tenant->wanted_rate && !tenant->min_rate)
		add_text(object, "minRateRefused", tenant->wanted_rate);
	if (!tenant->min_rate || !usage)
		return;
	const struct min_rate *rate = &usage->rate;
	const char *why = min_rate_why(rate->hindered);
	cJSON_AddNumberToObject(object, "minRate", (double)rate->wanted / MIN_RATE_ONE);
	if (rate->attained != MIN_RATE_UNKNOWN)
		cJSON_AddNumberToObject(object, "minRateAttained",
					(double)rate->attained / MIN_RATE_ONE);
	cJSON_AddBoolToObject(object, "minRateMissed", rate->missed);
	if (rate->missed)
		add_text(object, "minRateWhy", why ? why : MIN_RATE_NO_CAUSE);
	add_seconds(object, "minRateSeconds", rate->time);
	add_seconds(object, "minRateMissedSeconds", rate->missed_time);
}

static void describe_memory(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (tenant->memory_refused || (usage && usage->memory_cut))
		add_text(object, "memoryRefused", tenant->wanted_memory);
	if (!usage)
		return;
	if (usage->memory_limit)
		add_number(object, "memoryLimit", usage->memory_limit);
	add_number(object, "memoryReserved", usage->memory_reserved);
	if (usage->memory_waits.n)
		add_number(object, "memoryWaiting", usage->memory_waits.waiting);
}

/* Old names of fields, written for one more release. */
static void add_deprecated(cJSON *object)
{
	static const struct {
		const char *old, *new;
	} fields[] = {
		{"comparing", "tuning"},
		{"earlyDemands", "speculativeDemands"},
		{"earlyDemandsVain", "speculativeDemandMisses"},
		{"earlyDemandSeconds", "speculativeDemandSeconds"},
		{"burstSeconds", "busyPeriodSeconds"},
		{"patienceSeconds", "maxBlockingSeconds"},
	};

	for (size_t i = 0; i < countof(fields); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, fields[i].new);
		if (item)
			cJSON_AddItemToObject(object, fields[i].old, cJSON_Duplicate(item, false));
	}
}

static void describe_identity(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;

	add_number(object, "client", client->number);
	add_number(object, "pid", (uint64_t)client->pid);
	add_text(object, "command", client->command);
	add_text(object, "library", client->library);
	add_text(object, "namespace", tenant->namespace_);
	add_text(object, "pod", tenant->pod);
	add_text(object, "container", tenant->container);
	add_number(object, "uid", tenant->identity.uid);
	add_text(object, "cgroup", tenant->identity.cgroup);
	add_text(object, "gpu", client->gpu->id);
}

/* What was decided about it. */
static void describe_settings(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;

	if (client->account.level < WEIR_LEVELS)
		add_number(object, "actingLevel", client->account.level);
	add_number(object, "bit", client->bit);
	add_number(object, "share", tenant->share);
	if (tenant->weight_refused)
		add_text(object, "weightRefused", tenant->wanted_weight);
	describe_objective(object, client);
	describe_compute(object, client);
	describe_yield(object, client);
	describe_min_rate(object, client);
	describe_memory(object, client);
	if (client->held_until)
		cJSON_AddTrueToObject(object, "heldByHand");
	describe_workers(object, client);
}

static void describe_counters(cJSON *object, const struct client *client)
{
	const uint64_t *total = client->account.own.total;

	add_number(object, "launches", total[ACCOUNT_LAUNCHES]);
	add_seconds(object, "gpuSeconds", total[ACCOUNT_GPU_TIME]);
	add_number(object, "gates", total[ACCOUNT_GATES]);
	add_number(object, "gatesClosed", total[ACCOUNT_GATES_CLOSED]);
	add_number(object, "waits", total[ACCOUNT_WAITS]);
	add_seconds(object, "waitSeconds", total[ACCOUNT_WAIT_TIME]);
	add_number(object, "evictions", total[ACCOUNT_EVICTIONS]);
	add_number(object, "blocksSaved", total[ACCOUNT_BLOCKS_SAVED]);
	add_number(object, "blocksDrained", total[ACCOUNT_BLOCKS_DRAINED]);
	add_number(object, "bytesSaved", total[ACCOUNT_BYTES_SAVED]);
	add_number(object, "partialLeaves", total[ACCOUNT_PARTIAL_LEAVES]);
	add_number(object, "tuning", client->account.tuning);
	add_number(object, "speculativeDemands", total[ACCOUNT_SPECULATIVE]);
	add_number(object, "speculativeDemandMisses", total[ACCOUNT_SPECULATIVE_MISSES]);
	add_seconds(object, "speculativeDemandSeconds", total[ACCOUNT_SPECULATIVE_TIME]);
}

static cJSON *describe_client(const struct commands *commands, const struct client *client)
{
	const struct pod *pod = decider_pod(commands->decider, client->tenant);
	cJSON *object = cJSON_CreateObject();

	if (!object)
		return NULL;
	describe_identity(object, client);
	add_number(object, "level", client->level);
	add_text(object, "reason", client->tenant->reason);
	if (pod)
		pod_report_describe(object, commands->problems, pod);
	describe_settings(object, client);
	describe_loops(object, client);
	add_text(object, "state", state_of(client));
	if (client->overrun.time)
		add_seconds(object, "overrunSeconds", client->overrun.time);
	cJSON_AddBoolToObject(object, "concurrent", client_is_concurrent(client));
	add_number(object, "outstanding", client->account.outstanding);
	add_seconds(object, "remainingSeconds", client->account.remaining);
	describe_counters(object, client);
	describe_predictions(object, client);
	describe_blocking(object, client);
	describe_channels(object, client);
	add_deprecated(object);
	return object;
}

/* The MPS servers of its levels. */
static void describe_servers(cJSON *object, const struct commands *commands, const struct gpu *gpu)
{
	cJSON *servers = NULL;

	for (const struct mps_daemon *d = commands->mps->daemons; d; d = d->next) {
		if (d->gpu != gpu || d->state == MPS_ENDED)
			continue;
		const struct mps_server *server = mps_server_of(d);
		cJSON *one = cJSON_CreateObject();
		servers = servers ? servers : cJSON_AddArrayToObject(object, "servers");
		add_number(one, "level", d->request.level);
		cJSON_AddBoolToObject(one, "up", d->state == MPS_UP);
		if (d->n_servers)
			add_number(one, "pid", (uint64_t)d->servers[0]);
		add_number(one, "clients", d->n_clients);
		cJSON_AddBoolToObject(one, "hardwarePreemption", server != NULL);
		if (server)
			add_number(one, "sliceMicroseconds",
				   server->channels.slice ? server->channels.slice
							  : CHANNELS_DEFAULT_SLICE);
		if (server && server->channels.stopped)
			cJSON_AddTrueToObject(one, "stopped");
		cJSON_AddItemToArray(servers, one);
	}
}

/* Of the policy coexec: for each level at which clients run, how many, whether their numbers of
 * workers are being tried, how many such searches there were, and the speed-up that was found. */
static void describe_plans(cJSON *object, const struct gpu *gpu)
{
	cJSON *plans = NULL;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		const struct coexec_plan *plan = &gpu->queues.levels[level].plan;
		if (!plan->n)
			continue;
		cJSON *one = cJSON_CreateObject();
		plans = plans ? plans : cJSON_AddArrayToObject(object, "coexec");
		add_number(one, "level", level);
		add_number(one, "clients", plan->n);
		cJSON_AddBoolToObject(one, "searching", plan->searching);
		add_number(one, "searches", plan->searches);
		cJSON_AddNumberToObject(one, "speedUp", plan->speed_up);
		cJSON_AddItemToArray(plans, one);
	}
}

static cJSON *describe_gpu(const struct commands *commands, const struct gpu *gpu)
{
	const struct monitor_gpu *watched = monitor_find(commands->monitor, gpu);
	cJSON *object = cJSON_CreateObject();
	cJSON *demand = object ? cJSON_AddArrayToObject(object, "demand") : NULL;

	if (!demand) {
		cJSON_Delete(object);
		return NULL;
	}
	add_text(object, "gpu", gpu->id);
	add_text(object, "name", gpu->name);
	add_number(object, "memory", gpu->memory);
	if (gpu->index >= 0)
		add_number(object, "index", (uint64_t)gpu->index);
	add_text(object, "policy",
		 (gpu->policy ? gpu->policy : commands->decider->scheduler->policy)->name);
	add_text(object, "mode", gpu_mode_words[gpu_settings(commands->decider->config, gpu).mode]);
	if (watched) {
		cJSON_AddBoolToObject(object, "healthy", watched->healthy);
		add_text(object, "health", watched->reason);
	}
	describe_servers(object, commands, gpu);
	describe_plans(object, gpu);
	cJSON_AddBoolToObject(object, "hardwarePreemption",
			      gpu->self_test.state == SELF_TEST_WORKS);
	if (*gpu->self_test.reason)
		add_text(object, "hardwarePreemptionReason", gpu->self_test.reason);
	/* JSON numbers cannot hold 64 bits, so this is how many clients demand, not which. */
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS && gpu->open; level++) {
		uint64_t word = atomic_load(&gpu->region.pages[level].demand->word);
		cJSON_AddItemToArray(demand, cJSON_CreateNumber(__builtin_popcountll(word)));
	}
	return object;
}

/* Commands. Each fills the answer and returns NULL, or it returns what is wrong. */

struct exchange {
	const cJSON *request;
	cJSON *answer;
	uint64_t later; /* ns until commands_trace() answers; 0: @answer is the answer */
};

static const char *status(const struct commands *commands, struct exchange *exchange)
{
	cJSON *answer = exchange->answer;
	cJSON *gpus = cJSON_AddArrayToObject(answer, "gpus");
	cJSON *clients = cJSON_AddArrayToObject(answer, "clients");
	struct decider *decider = commands->decider;

	if (!gpus || !clients)
		return "no memory";
	cJSON_AddItemToObject(answer, "pods", pod_report_list(commands->problems));
	decider_read_memory(decider);
	add_text(answer, "version", WEIR_VERSION);
	add_text(answer, "policy", decider->scheduler->policy->name);
	if (*commands->reload->mistake)
		add_text(answer, "configMistake", commands->reload->mistake);
	add_number(answer, "timers", decider->scheduler->timers.n);
	add_seconds(answer, "timersLateSeconds", decider->scheduler->timers.late);
	for (const struct gpu *gpu = decider->gpus->all; gpu; gpu = gpu->hh.next)
		cJSON_AddItemToArray(gpus, describe_gpu(commands, gpu));
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next) {
		tenant_read(tenant);
		for (const struct client *c = tenant->clients; c; c = c->tenant_next)
			cJSON_AddItemToArray(clients, describe_client(commands, c));
	}
	return NULL;
}

static const char *policy(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(exchange->request, "name");
	const struct policy *wanted = cJSON_IsString(name) ? policy_find(name->valuestring) : NULL;
	struct scheduler *scheduler = commands->decider->scheduler;

	if (name && !wanted)
		return "no policy of that name";
	if (wanted && wanted != scheduler->commanded) {
		log_info("policy %s, by command", wanted->name);
		scheduler_set_policy(scheduler, wanted);
	}
	cJSON_AddStringToObject(exchange->answer, "policy", scheduler->policy->name);
	cJSON_AddStringToObject(exchange->answer, "policies", policy_names());
	return NULL;
}

/* The request's seconds, 0 to @max; negative: none, or out of range. */
static double seconds_of(const cJSON *request, double max)
{
	const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(request, "seconds");

	return cJSON_IsNumber(seconds) && seconds->valuedouble >= 0 && seconds->valuedouble <= max
		       ? seconds->valuedouble
		       : -1;
}

static struct client *find_client(const struct commands *commands, const cJSON *number)
{
	for (const struct gpu *gpu = commands->decider->gpus->all; gpu; gpu = gpu->hh.next)
		for (struct client *client = gpu->clients; client; client = client->gpu_next)
			if (cJSON_IsNumber(number) && number->valuedouble == (double)client->number)
				return client;
	return NULL;
}

static const char *hold(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(exchange->request, "client");
	struct client *client = find_client(commands, number);
	double seconds = seconds_of(exchange->request, COMMANDS_HOLD_MAX);

	if (!client)
		return "no client of that number";
	if (seconds < 0)
		return "expected 0 to 3600 seconds";
	log_info("client %llu is held for %.3f s, by command", (unsigned long long)client->number,
		 seconds);
	scheduler_hold(commands->decider->scheduler, client, (uint64_t)(seconds * 1e9));
	add_number(exchange->answer, "client", client->number);
	cJSON_AddNumberToObject(exchange->answer, "heldSeconds", seconds);
	return NULL;
}

static const char *bound(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(exchange->request, "client");
	const cJSON *workers = cJSON_GetObjectItemCaseSensitive(exchange->request, "workers");
	struct client *client = find_client(commands, number);

	if (!client)
		return "no client of that number";
	if (!cJSON_IsNumber(workers) || workers->valuedouble < 0 ||
	    workers->valuedouble > WORKERS_MOST)
		return "expected 0 to 32 workers";
	workers_set(client, (uint32_t)workers->valuedouble);
	log_info("client %llu has at most %u workers on an SM (0: not bounded), by command",
		 (unsigned long long)client->number, client->workers);
	add_number(exchange->answer, "client", client->number);
	add_number(exchange->answer, "workers", client->workers);
	return NULL;
}

/* NULL: no such GPU, or several GPUs and no @id. */
static const struct gpu *find_gpu(const struct commands *commands, const char *id)
{
	const struct gpu *only = commands->decider->gpus->all;

	for (const struct gpu *gpu = commands->decider->gpus->all; gpu && id; gpu = gpu->hh.next)
		if (strcmp(gpu->id, id) == 0)
			return gpu;
	return id || (only && only->hh.next) ? NULL : only;
}

static const char *trace(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(exchange->request, "gpu");
	const struct gpu *gpu = find_gpu(commands, cJSON_GetStringValue(id));
	double seconds = seconds_of(exchange->request, COMMANDS_TRACE_MAX);

	if (!gpu)
		return id ? "no such GPU" : "no GPU, or several: say which";
	if (seconds <= 0)
		return "expected up to 3600 seconds";
	int r = scheduler_record(commands->decider->scheduler, gpu);
	if (r < 0)
		return r == -EBUSY ? "somebody else records" : "no memory";
	exchange->later = (uint64_t)(seconds * 1e9) + 1;
	return NULL;
}

static const char *explain(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(exchange->request, "pod");
	struct explain_input input = {commands->decider, commands->report,
				      commands->reload->mistake};

	return explain_answer(&input, cJSON_GetStringValue(name), exchange->answer);
}

/* The loop runs: that is all. What other programs or tenants do must not change it. */
static const char *health(const struct commands *commands, struct exchange *exchange)
{
	(void)commands;
	cJSON_AddStringToObject(exchange->answer, "health", "ok");
	return NULL;
}

static const char *profiles(const struct commands *commands, struct exchange *exchange)
{
	return profile_command_list(commands->profiles, exchange->request, exchange->answer);
}

static const char *import_profile(const struct commands *commands, struct exchange *exchange)
{
	return profile_command_import(commands->profiles, exchange->request, exchange->answer);
}

static const char *forget_profiles(const struct commands *commands, struct exchange *exchange)
{
	return profile_command_forget(commands->profiles, exchange->request, exchange->answer);
}

static const struct {
	const char *name;
	const char *(*run)(const struct commands *commands, struct exchange *exchange);
} table[] = {
	{"health", health},
	{"status", status},
	{"policy", policy},
	{"hold", hold},
	{"bound", bound},
	{"trace", trace},
	{"explain", explain},
	{"profiles", profiles},
	{"import-profile", import_profile},
	{"forget-profiles", forget_profiles},
};

/* Frees @answer. @wrong: what was wrong with the request; NULL: nothing. */
static char *print(cJSON *answer, const char *wrong)
{
	if (wrong)
		cJSON_AddStringToObject(answer, "error", wrong);
	char *text = cJSON_PrintUnformatted(answer);
	cJSON_Delete(answer);
	return text;
}

char *commands_answer(const struct commands *commands, const char *request, size_t size,
		      uint64_t *later)
{
	cJSON *json = cJSON_ParseWithLength(request, size);
	struct exchange exchange = {.request = json, .answer = cJSON_CreateObject()};
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "command"));
	const char *wrong = name ? "unknown command" : "not a command";

	for (size_t i = 0; name && i < countof(table); i++)
		if (strcmp(table[i].name, name) == 0)
			wrong = table[i].run(commands, &exchange);
	cJSON_Delete(json);
	*later = exchange.later;
	if (!*later)
		return print(exchange.answer, wrong);
	cJSON_Delete(exchange.answer);
	return NULL;
}

char *commands_trace(const struct commands *commands)
{
	struct record *record = &commands->decider->scheduler->record;
	const struct gpu *gpu = record->gpu;
	cleanup(freep) char *text = record_end(record, loop_now());
	cJSON *answer = cJSON_CreateObject();

	if (!gpu || !text)
		return print(answer, "no memory");
	cJSON_AddStringToObject(answer, "gpu", gpu->id);
	cJSON_AddStringToObject(answer, "trace", text);
	return print(answer, NULL);
}
