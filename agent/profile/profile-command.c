#include "profile/profile-command.h"

#include <string.h>
#include <time.h>

#include "profile/profile-json.h"

#include "weir/log.h"

#define OFF "this agent keeps no profiles"

static const char *text_of(const cJSON *request, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, name));
}

const char *profile_command_list(struct profile_service *service, const cJSON *request,
				 cJSON *answer)
{
	const cJSON *after = cJSON_GetObjectItemCaseSensitive(request, "after");
	const char *scope = text_of(request, "namespace");
	double last = cJSON_IsNumber(after) ? after->valuedouble : 0;
	cJSON *list = cJSON_AddArrayToObject(answer, "profiles");
	int n = 0;

	if (!service->on)
		return OFF;
	for (const struct profile *p = service->profiles.all; p; p = p->all_next) {
		if ((double)p->number <= last ||
		    (scope && strcmp(scope, p->kernel->key.scope) != 0))
			continue;
		if (n++ == PROFILE_COMMAND_PAGE) {
			cJSON_AddNumberToObject(answer, "next", last);
			break;
		}
		cJSON_AddItemToArray(list, profile_json_make(p));
		last = (double)p->number;
	}
	return NULL;
}

const char *profile_command_import(struct profile_service *service, const cJSON *request,
				   cJSON *answer)
{
	const cJSON *profile = cJSON_GetObjectItemCaseSensitive(request, "profile");
	struct weir_profile values;
	struct profile_key key;

	(void)answer;
	if (!service->on)
		return OFF;
	const char *wrong =
		profile_json_read(profile, text_of(request, "namespace"), &key, &values);
	if (wrong)
		return wrong;
	if (profiles_put(&service->profiles, &key, &values, (uint64_t)time(NULL)) < 0)
		return "no memory";
	profile_file_changed(&service->file);
	return NULL;
}

const char *profile_command_forget(struct profile_service *service, const cJSON *request,
				   cJSON *answer)
{
	const char *scope = text_of(request, "namespace"), *gpu = text_of(request, "gpu");

	if (!service->on)
		return OFF;
	unsigned n = profiles_forget(&service->profiles, scope, gpu);
	log_info("%u profiles are forgotten, by command", n);
	profile_file_changed(&service->file);
	cJSON_AddNumberToObject(answer, "forgotten", n);
	return NULL;
}
