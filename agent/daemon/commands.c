#include "daemon/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "daemon/status.h"

#include "weir/base.h"
#include "weir/log.h"

static char *print(cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	cJSON_Delete(json);
	return text;
}

static char *error(const char *text)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "error", text);
	return print(json);
}

static char *status(const struct commands *commands, const cJSON *request, uint64_t *later)
{
	(void)request, (void)later;
	return status_print(commands->decider, commands->monitor);
}

static char *policy(const struct commands *commands, const cJSON *request, uint64_t *later)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(request, "name");
	const struct policy *wanted = NULL;
	cJSON *json;

	(void)later;
	if (name) {
		wanted = cJSON_IsString(name) ? policy_find(name->valuestring) : NULL;
		if (!wanted)
			return error("no policy of that name");
	}
	if (wanted && wanted != commands->decider->scheduler->commanded) {
		log_info("policy %s, by command", wanted->name);
		scheduler_set_policy(commands->decider->scheduler, wanted);
	}
	json = cJSON_CreateObject();
	cJSON_AddStringToObject(json, "policy", commands->decider->scheduler->policy->name);
	cJSON_AddStringToObject(json, "policies", policy_names());
	return print(json);
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

static char *hold(const struct commands *commands, const cJSON *request, uint64_t *later)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(request, "client");
	struct client *client = find_client(commands, number);
	double seconds = seconds_of(request, COMMANDS_HOLD_MAX);
	cJSON *json;

	(void)later;
	if (!client)
		return error("no client of that number");
	if (seconds < 0)
		return error("expected 0 to 3600 seconds");
	log_info("client %llu is held for %.3f s, by command", (unsigned long long)client->number,
		 seconds);
	scheduler_hold(commands->decider->scheduler, client, (uint64_t)(seconds * 1e9));
	json = cJSON_CreateObject();
	cJSON_AddNumberToObject(json, "client", (double)client->number);
	cJSON_AddNumberToObject(json, "heldSeconds", seconds);
	return print(json);
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

static char *trace(const struct commands *commands, const cJSON *request, uint64_t *later)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(request, "gpu");
	const struct gpu *gpu = find_gpu(commands, cJSON_GetStringValue(id));
	double seconds = seconds_of(request, COMMANDS_TRACE_MAX);

	if (!gpu)
		return error(id ? "no such GPU" : "no GPU, or several: say which");
	if (seconds <= 0)
		return error("expected up to 3600 seconds");
	int r = scheduler_record(commands->decider->scheduler, gpu);
	if (r < 0)
		return error(r == -EBUSY ? "somebody else records" : "no memory");
	*later = (uint64_t)(seconds * 1e9) + 1;
	return NULL;
}

char *commands_trace(const struct commands *commands)
{
	const struct gpu *gpu = commands->decider->scheduler->record.gpu;
	cleanup(freep) char *text = record_end(&commands->decider->scheduler->record, loop_now());
	cJSON *json;

	if (!gpu || !text)
		return error("no memory");
	json = cJSON_CreateObject();
	cJSON_AddStringToObject(json, "gpu", gpu->id);
	cJSON_AddStringToObject(json, "trace", text);
	return print(json);
}

static const struct {
	const char *name;
	char *(*answer)(const struct commands *commands, const cJSON *request, uint64_t *later);
} table[] = {
	{"status", status},
	{"policy", policy},
	{"hold", hold},
	{"trace", trace},
};

char *commands_answer(const struct commands *commands, const char *request, size_t size,
		      uint64_t *later)
{
	cJSON *json = cJSON_ParseWithLength(request, size);
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "command"));
	char *answer = NULL;
	size_t i = 0;

	*later = 0;
	while (name && i < countof(table) && strcmp(table[i].name, name) != 0)
		i++;
	if (!name || i == countof(table))
		answer = error(name ? "unknown command" : "not a command");
	else
		answer = table[i].answer(commands, json, later);
	cJSON_Delete(json);
	return answer;
}
