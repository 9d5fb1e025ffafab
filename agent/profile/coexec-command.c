#include "profile/coexec-command.h"

#include <inttypes.h>
#include <stdio.h>

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
