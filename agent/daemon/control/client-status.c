#include "daemon/control/client-status.h"

#include "daemon/decider.h"
#include "daemon/control/json.h"
#include "policy/yield.h"
#include "reports/overrun.h"
#include "reports/pod-report.h"
#include "scheduler/preemption.h"
#include "scheduler/sms.h"
#include "scheduler/workers.h"

#include "weir/base.h"

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
	if (overrun_staying(client))
		return "stays";
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
		json_add_text(object, "latencySloRefused", tenant->wanted_latency);
	if (!tenant->slo || !usage)
		return;
	json_add_seconds(object, "latencySloSeconds", tenant->slo);
	json_add_number(object, "starts", usage->objective.starts);
	json_add_number(object, "startsLate", usage->objective.late);
	cJSON_AddBoolToObject(object, "latencySloMissed", usage->objective.missed);
}

/* Mean error relative to the measured time; cost of a switch that the policy assumes. */
static void describe_predictions(cJSON *object, const struct client *client)
{
	const uint64_t *total = client->account.own.total;
	double n = (double)total[ACCOUNT_PREDICTIONS];

	json_add_number(object, "predictions", total[ACCOUNT_PREDICTIONS]);
	if (n > 0)
		cJSON_AddNumberToObject(object, "predictionError",
					(double)total[ACCOUNT_PREDICTION_ERROR] / 1e6 / n);
	if (client->entry.cost)
		json_add_seconds(object, "switchSeconds", client->entry.cost);
}

/* Reported by the client; told to the client. */
static void describe_blocking(cJSON *object, const struct client *client)
{
	uint64_t burst = atomic_load(&client->pages.status->busy_period);
	uint32_t patience = atomic_load(&client->pages.control->max_blocking_time);

	if (burst)
		json_add_seconds(object, "busyPeriodSeconds", burst);
	if (patience)
		json_add_seconds(object, "maxBlockingSeconds", patience);
}

/* Of the whole container on this GPU. */
static void describe_channels(cJSON *object, const struct client *client)
{
	const struct channels_client *channels = &client->channels;

	bool used = channels->usable && client->gpu->self_test.state == SELF_TEST_WORKS;

	cJSON_AddBoolToObject(object, "hardwarePreemption", used);
	if (used)
		json_add_number(object, "sliceMicroseconds",
				channels->slice ? channels->slice : CHANNELS_DEFAULT_SLICE);
	if (channels->stopped)
		cJSON_AddTrueToObject(object, "stopped");
	if (channels->disobeyed)
		json_add_number(object, "slicesChanged", channels->disobeyed);
}

/* Of the whole container on this GPU. */
static void describe_compute(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (*tenant->wanted_compute && !tenant->compute_limit)
		json_add_text(object, "computeLimitRefused", tenant->wanted_compute);
	if (!tenant->compute_limit || !usage)
		return;
	json_add_number(object, "computeLimit", tenant->compute_limit);
	json_add_text(object, "computeLimitBy", preemption_works(client) ? "hardware" : "gates");
	json_add_seconds(object, "computeSeconds", usage->limit.used);
	json_add_seconds(object, "computeThrottledSeconds", usage->limit.throttled);
}

/* What a client finds out by itself. */
static void describe_found(cJSON *object, const struct weir_status_page *status)
{
	json_add_text(object, "yieldFound", yield_found_name(atomic_load(&status->yield_found)));
	json_add_number(object, "yieldTriedLaunches", atomic_load(&status->yield_tried));
	json_add_seconds(object, "yieldLostSeconds", atomic_load(&status->yield_lost));
}

/* SMs: only where clients run at the same time. */
static void describe_yield(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	uint64_t needed = sms_needed(client), left = sms_left(client), given = sms_given(client);
	char text[YIELD_TEXT_MAX];

	if (tenant->yield_refused)
		json_add_text(object, "yieldRefused", tenant->wanted_yield);
	json_add_text(object, "yield", yield_format(tenant->yield, text));
	if (tenant->yield == YIELD_AUTO)
		describe_found(object, client->pages.status);
	if (needed != SMS_UNKNOWN)
		json_add_number(object, "smsNeeded", needed);
	if (left != SMS_UNKNOWN)
		json_add_number(object, "smsLeft", left);
	if (given != SMS_UNKNOWN)
		json_add_number(object, "smsGiven", given);
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
		json_add_number(object, "workersFit", fit);
	for (size_t i = 0; parts && i < WEIR_SM_RESOURCES; i++)
		cJSON_AddItemToArray(
			parts, cJSON_CreateNumber(
				       (double)atomic_load(&client->pages.status->worker_parts[i]) /
				       WEIR_SM_PARTS));
	if (bound)
		json_add_number(object, "workers", bound);
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
	json_add_number(object, "loops", account->loops);
	json_add_number(object, "loopsOnGpu", account->loops_on_gpu);
	at = snprintf(text, sizeof(text), "%s", account->loops_on_gpu ? "on GPU" : "blocked");
	for (size_t i = 0; i < countof(kinds); i++) {
		json_add_number(waits, kinds[i], account->loops_waiting[i]);
		if (account->loops_waiting[i])
			at += snprintf(text + at, sizeof(text) - (size_t)at, " %s:%u", kinds[i],
				       account->loops_waiting[i]);
	}
	json_add_text(object, "loop", text);
	json_add_number(object, "loopsBlocked", total[ACCOUNT_LOOPS_BLOCKED]);
	json_add_seconds(object, "loopsBlockedSeconds", total[ACCOUNT_LOOPS_BLOCKED_TIME]);
}

/* Of the whole container on this GPU. */
static void describe_min_rate(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (*tenant->wanted_rate && !tenant->min_rate)
		json_add_text(object, "minRateRefused", tenant->wanted_rate);
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
		json_add_text(object, "minRateWhy", why ? why : MIN_RATE_NO_CAUSE);
	json_add_seconds(object, "minRateSeconds", rate->time);
	json_add_seconds(object, "minRateMissedSeconds", rate->missed_time);
}

static void describe_memory(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;
	const struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (tenant->memory_refused || (usage && usage->memory_cut))
		json_add_text(object, "memoryRefused", tenant->wanted_memory);
	if (!usage)
		return;
	if (usage->memory_limit)
		json_add_number(object, "memoryLimit", usage->memory_limit);
	json_add_number(object, "memoryReserved", usage->memory_reserved);
	if (usage->memory_waits.n)
		json_add_number(object, "memoryWaiting", usage->memory_waits.waiting);
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

	json_add_number(object, "client", client->number);
	json_add_number(object, "pid", (uint64_t)client->pid);
	json_add_text(object, "command", client->command);
	json_add_text(object, "library", client->library);
	json_add_text(object, "namespace", tenant->namespace_);
	json_add_text(object, "pod", tenant->pod);
	json_add_text(object, "container", tenant->container);
	json_add_number(object, "uid", tenant->identity.uid);
	json_add_text(object, "cgroup", tenant->identity.cgroup);
	json_add_text(object, "gpu", client->gpu->id);
}

/* What was decided about it. */
static void describe_settings(cJSON *object, const struct client *client)
{
	const struct tenant *tenant = client->tenant;

	if (client->account.level < WEIR_LEVELS)
		json_add_number(object, "actingLevel", client->account.level);
	json_add_number(object, "bit", client->bit);
	json_add_number(object, "share", tenant->share);
	if (tenant->weight_refused)
		json_add_text(object, "weightRefused", tenant->wanted_weight);
	describe_objective(object, client);
	describe_compute(object, client);
	describe_yield(object, client);
	describe_min_rate(object, client);
	describe_memory(object, client);
	if (client->held_until)
		cJSON_AddTrueToObject(object, "heldByHand");
	uint64_t left = scheduler_hold_left(client, loop_now());
	if (left)
		json_add_seconds(object, "holdEndsSeconds", left);
	describe_workers(object, client);
}

static void describe_counters(cJSON *object, const struct client *client)
{
	const uint64_t *total = client->account.own.total;

	json_add_number(object, "launches", total[ACCOUNT_LAUNCHES]);
	json_add_seconds(object, "gpuSeconds", total[ACCOUNT_GPU_TIME]);
	json_add_number(object, "gates", total[ACCOUNT_GATES]);
	json_add_number(object, "gatesClosed", total[ACCOUNT_GATES_CLOSED]);
	json_add_number(object, "waits", total[ACCOUNT_WAITS]);
	json_add_seconds(object, "waitSeconds", total[ACCOUNT_WAIT_TIME]);
	json_add_number(object, "evictions", total[ACCOUNT_EVICTIONS]);
	json_add_number(object, "preempted", client->entry.preempted);
	json_add_number(object, "blocksSaved", total[ACCOUNT_BLOCKS_SAVED]);
	json_add_number(object, "blocksDrained", total[ACCOUNT_BLOCKS_DRAINED]);
	json_add_number(object, "bytesSaved", total[ACCOUNT_BYTES_SAVED]);
	json_add_number(object, "partialLeaves", total[ACCOUNT_PARTIAL_LEAVES]);
	json_add_number(object, "tuning", client->account.tuning);
	json_add_number(object, "speculativeDemands", total[ACCOUNT_SPECULATIVE]);
	json_add_number(object, "speculativeDemandMisses", total[ACCOUNT_SPECULATIVE_MISSES]);
	json_add_seconds(object, "speculativeDemandSeconds", total[ACCOUNT_SPECULATIVE_TIME]);
}

cJSON *status_of_client(const struct client *client, struct decider *decider,
			const struct pod_report *problems)
{
	const struct pod *pod = decider_pod(decider, client->tenant);
	cJSON *object = cJSON_CreateObject();

	if (!object)
		return NULL;
	describe_identity(object, client);
	json_add_number(object, "level", client->level);
	json_add_text(object, "reason", client->tenant->reason);
	if (pod)
		pod_report_describe(object, problems, pod);
	describe_settings(object, client);
	describe_loops(object, client);
	json_add_text(object, "state", state_of(client));
	if (client->overrun.time)
		json_add_seconds(object, "overrunSeconds", client->overrun.time);
	if (overrun_staying(client))
		json_add_seconds(object, "staysSeconds", overrun_staying(client));
	cJSON_AddBoolToObject(object, "concurrent", client_is_concurrent(client));
	json_add_number(object, "outstanding", client->account.outstanding);
	json_add_seconds(object, "remainingSeconds", client->account.remaining);
	describe_counters(object, client);
	describe_predictions(object, client);
	describe_blocking(object, client);
	describe_channels(object, client);
	add_deprecated(object);
	return object;
}
