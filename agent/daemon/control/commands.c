#include "daemon/control/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "daemon/control/client-status.h"
#include "daemon/control/explain.h"
#include "daemon/control/json.h"
#include "daemon/reload.h"
#include "mps/mps-server.h"
#include "profile/coexec-command.h"
#include "profile/profile-command.h"
#include "scheduler/preemption.h"
#include "scheduler/workers.h"

#include "weir/base.h"
#include "weir/log.h"

/* Status */

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
		json_add_number(one, "level", d->request.level);
		cJSON_AddBoolToObject(one, "up", d->state == MPS_UP);
		if (d->n_servers)
			json_add_number(one, "pid", (uint64_t)d->servers[0]);
		json_add_number(one, "clients", d->n_clients);
		cJSON_AddBoolToObject(one, "hardwarePreemption", server != NULL);
		if (server)
			json_add_number(one, "sliceMicroseconds",
					server->channels.slice ? server->channels.slice
							       : CHANNELS_DEFAULT_SLICE);
		if (server && server->channels.stopped)
			cJSON_AddTrueToObject(one, "stopped");
		cJSON_AddItemToArray(servers, one);
	}
}

/* What the latest search has measured: workers of each client, and how fast each got on. */
static void describe_tries(cJSON *object, const struct coexec_plan *plan)
{
	const struct coexec_search *search = &plan->search;
	cJSON *tries = cJSON_AddArrayToObject(object, "tries");

	for (unsigned i = 0; tries && i < search->n; i++) {
		if (!search->measured[i])
			continue;
		cJSON *one = cJSON_CreateObject();
		cJSON *workers = cJSON_AddArrayToObject(one, "workers");
		cJSON *rates = cJSON_AddArrayToObject(one, "rates");
		for (unsigned k = 0; k < search->n_kernels; k++) {
			cJSON_AddItemToArray(workers,
					     cJSON_CreateNumber(plan->space.of[i].workers[k]));
			cJSON_AddItemToArray(rates, cJSON_CreateNumber(search->rates[i][k]));
		}
		cJSON_AddItemToArray(tries, one);
	}
}

/* The clients that run at the same time, their kernels, and the speed alone of each, in ns of work
 * per ns. */
static void describe_members(cJSON *object, const struct coexec_plan *plan)
{
	cJSON *members = cJSON_AddArrayToObject(object, "members");
	char number[COEXEC_NUMBER_TEXT];

	for (unsigned i = 0; members && i < plan->n; i++) {
		cJSON *one = cJSON_CreateObject();
		json_add_number(one, "client",
				container_of(plan->members[i], struct client, entry)->number);
		coexec_number_print(plan->numbers[i], number);
		json_add_text(one, "kernel", number);
		cJSON_AddNumberToObject(one, "alone", plan->members[i]->coexec.alone);
		cJSON_AddItemToArray(members, one);
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
		json_add_number(one, "level", level);
		json_add_number(one, "clients", plan->n);
		cJSON_AddBoolToObject(one, "searching", plan->searching);
		json_add_number(one, "searches", plan->searches);
		cJSON_AddNumberToObject(one, "speedUp", plan->speed_up);
		describe_members(one, plan);
		describe_tries(one, plan);
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
	json_add_text(object, "gpu", gpu->id);
	json_add_text(object, "name", gpu->name);
	json_add_number(object, "memory", gpu->memory);
	if (gpu->index >= 0)
		json_add_number(object, "index", (uint64_t)gpu->index);
	json_add_text(object, "policy",
		      (gpu->policy ? gpu->policy : commands->decider->scheduler->policy)->name);
	json_add_text(object, "mode",
		      gpu_mode_words[gpu_settings(commands->decider->config, gpu).mode]);
	if (watched) {
		cJSON_AddBoolToObject(object, "healthy", watched->healthy);
		json_add_text(object, "health", watched->reason);
	}
	describe_servers(object, commands, gpu);
	describe_plans(object, gpu);
	cJSON_AddBoolToObject(object, "hardwarePreemption",
			      gpu->self_test.state == SELF_TEST_WORKS);
	if (*gpu->self_test.reason)
		json_add_text(object, "hardwarePreemptionReason", gpu->self_test.reason);
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
	json_add_text(answer, "version", WEIR_VERSION);
	json_add_text(answer, "policy", decider->scheduler->policy->name);
	if (*commands->reload->mistake)
		json_add_text(answer, "configMistake", commands->reload->mistake);
	json_add_number(answer, "timers", decider->scheduler->timers.n);
	json_add_seconds(answer, "timersLateSeconds", decider->scheduler->timers.late);
	for (const struct gpu *gpu = decider->gpus->all; gpu; gpu = gpu->hh.next)
		cJSON_AddItemToArray(gpus, describe_gpu(commands, gpu));
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next) {
		tenant_read(tenant);
		for (const struct client *c = tenant->clients; c; c = c->tenant_next)
			cJSON_AddItemToArray(clients, status_of_client(c, commands->decider,
								       commands->problems));
	}
	return NULL;
}

static const char *no_such_policy(void)
{
	static char text[128];

	snprintf(text, sizeof(text), "no policy of that name; there are %s", policy_names());
	return text;
}

static const char *policy(const struct commands *commands, struct exchange *exchange)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(exchange->request, "name");
	const struct policy *wanted = cJSON_IsString(name) ? policy_find(name->valuestring) : NULL;
	struct scheduler *scheduler = commands->decider->scheduler;

	if (name && !wanted)
		return no_such_policy();
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
	json_add_number(exchange->answer, "client", client->number);
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
	json_add_number(exchange->answer, "client", client->number);
	json_add_number(exchange->answer, "workers", client->workers);
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

static const char *coexec_sets(const struct commands *commands, struct exchange *exchange)
{
	coexec_command_list(&commands->decider->scheduler->memory, exchange->answer);
	return NULL;
}

static const char *import_set(const struct commands *commands, struct exchange *exchange)
{
	return coexec_command_import(&commands->decider->scheduler->memory, exchange->request);
}

static const char *forget_sets(const struct commands *commands, struct exchange *exchange)
{
	coexec_command_forget(&commands->decider->scheduler->memory, exchange->answer);
	return NULL;
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
	{"coexec-sets", coexec_sets},
	{"import-coexec-set", import_set},
	{"forget-coexec-sets", forget_sets},
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
