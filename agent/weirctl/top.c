#include "weirctl/top.h"

#include "weir/base.h"

static const struct {
	const char *sum, *rate;
} rates[] = {
	{"gpuSeconds", "gpuShare"},
	{"waitSeconds", "waitShare"},
	{"launches", "launchRate"},
};

static const cJSON *find(const cJSON *clients, const cJSON *number)
{
	const cJSON *client;

	cJSON_ArrayForEach(client, clients)
	{
		const cJSON *other = cJSON_GetObjectItemCaseSensitive(client, "client");
		if (cJSON_IsNumber(number) && cJSON_IsNumber(other) &&
		    number->valuedouble == other->valuedouble)
			return client;
	}
	return NULL;
}

static void add_rates(cJSON *client, const cJSON *before, double seconds)
{
	for (size_t i = 0; i < countof(rates); i++) {
		const cJSON *new = cJSON_GetObjectItemCaseSensitive(client, rates[i].sum);
		const cJSON *old = cJSON_GetObjectItemCaseSensitive(before, rates[i].sum);
		if (cJSON_IsNumber(new) && cJSON_IsNumber(old))
			cJSON_AddNumberToObject(client, rates[i].rate,
						(new->valuedouble - old->valuedouble) / seconds);
	}
}

void top_rates(cJSON *now, const cJSON *before, double seconds)
{
	const cJSON *clients = cJSON_GetObjectItemCaseSensitive(before, "clients");
	cJSON *client;

	cJSON_ArrayForEach(client, cJSON_GetObjectItemCaseSensitive(now, "clients"))
	{
		const cJSON *same =
			find(clients, cJSON_GetObjectItemCaseSensitive(client, "client"));
		if (same && seconds > 0)
			add_rates(client, same, seconds);
	}
}
