#include "profile/coexec-command.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir/log.h"

void coexec_number_print(uint64_t number, char out[COEXEC_NUMBER_TEXT])
{
	snprintf(out, COEXEC_NUMBER_TEXT, "%016" PRIx64, number);
}

static cJSON *describe(const struct coexec_set *set)
{
	cJSON *object = cJSON_CreateObject();
	cJSON *kernels = cJSON_AddArrayToObject(object, "kernels");
	cJSON *workers = cJSON_AddArrayToObject(object, "workers");
	char number[COEXEC_NUMBER_TEXT];

	for (unsigned i = 0; i < COEXEC_MOST && set->kernels[i]; i++) {
		coexec_number_print(set->kernels[i], number);
		cJSON_AddItemToArray(kernels, cJSON_CreateString(number));
		cJSON_AddItemToArray(workers, cJSON_CreateNumber(set->workers[i]));
	}
	cJSON_AddNumberToObject(object, "speedUp", set->speed_up);
	return object;
}

void coexec_command_list(const struct coexec_memory *memory, cJSON *answer)
{
	cJSON *list = cJSON_AddArrayToObject(answer, "sets");

	for (size_t i = 0; i < COEXEC_SETS; i++)
		if (memory->sets[i].kernels[0])
			cJSON_AddItemToArray(list, describe(&memory->sets[i]));
}

/* 16 digits, not all 0. */
static bool read_number(const cJSON *item, uint64_t *number)
{
	const char *text = cJSON_GetStringValue(item);

	*number = 0;
	if (!text || strlen(text) != COEXEC_NUMBER_TEXT - 1)
		return false;
	for (const char *c = text; *c; c++)
		if (!isxdigit((unsigned char)*c))
			return false;
	*number = strtoull(text, NULL, 16);
	return *number != 0;
}

static bool read_workers(const cJSON *item, uint8_t *workers)
{
	bool good = cJSON_IsNumber(item) && item->valuedouble >= 0 &&
		    item->valuedouble <= COEXEC_WORKERS;

	*workers = good ? (uint8_t)item->valuedouble : 0;
	return good;
}

const char *coexec_set_read(const cJSON *object, struct coexec_set *set, unsigned *n)
{
	const cJSON *kernels = cJSON_GetObjectItemCaseSensitive(object, "kernels");
	const cJSON *workers = cJSON_GetObjectItemCaseSensitive(object, "workers");
	const cJSON *speed_up = cJSON_GetObjectItemCaseSensitive(object, "speedUp");
	int size = cJSON_GetArraySize(kernels);

	*set = (struct coexec_set){0};
	if (size < 1 || (unsigned)size > COEXEC_MOST || cJSON_GetArraySize(workers) != size)
		return "`kernels` and `workers` must be as many, and no more than can run at once";
	for (int i = 0; i < size; i++)
		if (!read_number(cJSON_GetArrayItem(kernels, i), &set->kernels[i]) ||
		    !read_workers(cJSON_GetArrayItem(workers, i), &set->workers[i]))
			return "a kernel is not 16 hexadecimal digits, or its workers are too many";
	set->speed_up = cJSON_IsNumber(speed_up) ? speed_up->valuedouble : -1;
	*n = (unsigned)size;
	return coexec_set_is_sane(set) ? NULL : "`speedUp` is missing or out of range";
}

const char *coexec_command_import(struct coexec_memory *memory, const cJSON *request)
{
	struct coexec_set set;
	unsigned n;
	const char *wrong =
		coexec_set_read(cJSON_GetObjectItemCaseSensitive(request, "set"), &set, &n);

	if (!wrong)
		coexec_memory_put(memory, set.kernels, n, set.workers, set.speed_up);
	return wrong;
}

void coexec_command_forget(struct coexec_memory *memory, cJSON *answer)
{
	unsigned n = coexec_memory_forget(memory);

	log_info("%u sets of kernels are forgotten, by command", n);
	cJSON_AddNumberToObject(answer, "forgotten", n);
}
