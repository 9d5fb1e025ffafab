/* Random files of profiles, random profiles and sets of kernels of JSON: refused, or all that is
 * kept is sane and comes out as it went in. */
#include "profile/coexec-command.h"
#include "profile/profile-file.h"
#include "profile/profile-json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(struct profiles *profiles, const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	profile_file_parse(profiles, copy, size);
	free(copy);
}

static void read_json(struct profiles *profiles, const uint8_t *data, size_t size)
{
	cJSON *json = cJSON_ParseWithLength((const char *)data, size);
	struct weir_profile values;
	struct profile_key key;

	if (!profile_json_read(json, NULL, &key, &values))
		profiles_put(profiles, &key, &values, 1);
	cJSON_Delete(json);
}

static void read_set(const uint8_t *data, size_t size)
{
	cJSON *json = cJSON_ParseWithLength((const char *)data, size);
	struct coexec_set set;
	unsigned n;

	if (!coexec_set_read(json, &set, &n) &&
	    (!coexec_set_is_sane(&set) || n < 1 || n > COEXEC_MOST || !set.kernels[n - 1]))
		abort();
	cJSON_Delete(json);
}

static void expect_same_from_json(const struct profile *profile)
{
	cJSON *json = profile_json_make(profile);
	struct weir_profile values;
	struct profile_key key;

	if (profile_json_read(json, NULL, &key, &values) ||
	    memcmp(&key, &profile->kernel->key, sizeof(key)) != 0)
		abort();
	cJSON_Delete(json);
}

static void expect_same_from_file(const struct profiles *profiles)
{
	struct profiles again = {0};
	size_t size;
	uint8_t *bytes = profile_file_format(profiles, &size);

	if (!bytes || profile_file_parse(&again, bytes, size) || again.n != profiles->n)
		abort();
	free(bytes);
	profiles_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profiles profiles = {0};

	read_set(data, size);
	if (size && data[0] == '{')
		read_json(&profiles, data, size);
	else
		read_file(&profiles, data, size);
	for (const struct profile *p = profiles.all; p; p = p->all_next) {
		if (!weir_profile_is_sane(&p->values))
			abort();
		/* JSON knows no forms beyond ours, and no text that is not UTF-8. */
		if (size && data[0] == '{')
			expect_same_from_json(p);
	}
	expect_same_from_file(&profiles);
	profiles_deinit(&profiles);
	return 0;
}
