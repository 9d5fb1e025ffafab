#include "profile/profile-json.h"

#include <string.h>

#include "policy/yield.h"

#include "weir/base.h"
#include "weir/tickets.h"
#include "weir/transform.h"

static void add_size(cJSON *object, const char *name, const uint32_t size[3])
{
	cJSON *array = cJSON_AddArrayToObject(object, name);

	for (int i = 0; i < 3; i++)
		cJSON_AddItemToArray(array, cJSON_CreateNumber(size[i]));
}

static cJSON *make_choice(const struct weir_profile_choice *choice)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "form", weir_form_name((enum weir_form)choice->form));
	if (choice->form == WEIR_NATIVE)
		return object;
	cJSON_AddNumberToObject(object, "build", choice->build);
	cJSON_AddNumberToObject(object, "chunk", choice->chunk);
	cJSON_AddNumberToObject(object, "workers", choice->workers);
	cJSON_AddBoolToObject(object, "ahead", choice->flags & WEIR_PROFILE_AHEAD);
	cJSON_AddBoolToObject(object, "apart", choice->flags & WEIR_PROFILE_APART);
	cJSON_AddNumberToObject(object, "ratio", choice->ratio / 1e6);
	return object;
}

cJSON *profile_json_make(const struct profile *profile)
{
	const struct profile_key *key = &profile->kernel->key;
	const struct weir_profile *values = &profile->values;
	const struct weir_profile_geometry *geometry = &values->geometry;
	char kernel[DIGEST_TEXT];
	cJSON *object = cJSON_CreateObject();

	digest_format(&key->kernel, kernel);
	cJSON_AddStringToObject(object, "namespace", key->scope);
	cJSON_AddStringToObject(object, "gpu", key->gpu);
	cJSON_AddStringToObject(object, "kernel", kernel);
	add_size(object, "grid", geometry->grid);
	add_size(object, "block", geometry->block);
	cJSON_AddNumberToObject(object, "shared", geometry->shared);
	cJSON_AddNumberToObject(object, "sms", geometry->sms);
	cJSON_AddNumberToObject(object, "latencyMicroseconds", geometry->latency);
	cJSON_AddNumberToObject(object, "nativeNanoseconds", (double)values->native);
	cJSON_AddNumberToObject(object, "evictionNanoseconds", (double)values->eviction_cost);
	cJSON_AddNumberToObject(object, "samples", values->samples);
	if (values->yields)
		cJSON_AddStringToObject(object, "yields", yield_found_name(values->yields));
	cJSON_AddNumberToObject(object, "used", (double)profile->used);
	cJSON *choices = cJSON_AddArrayToObject(object, "choices");
	for (int i = 0; i < WEIR_PROFILE_CHOICES; i++)
		cJSON_AddItemToArray(choices, make_choice(&values->choices[i]));
	return object;
}

/* Reading. A number that is missing is 0. */

static bool read_value(const cJSON *item, double most, double *out)
{
	*out = 0;
	if (!item)
		return true;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= most))
		return false;
	*out = item->valuedouble;
	return true;
}

static bool read_u64(const cJSON *object, const char *name, uint64_t *out)
{
	double value;
	bool good = read_value(cJSON_GetObjectItemCaseSensitive(object, name), 1e15, &value);

	*out = (uint64_t)value;
	return good;
}

static bool read_u32(const cJSON *object, const char *name, uint32_t *out)
{
	double value;
	bool good = read_value(cJSON_GetObjectItemCaseSensitive(object, name), UINT32_MAX, &value);

	*out = (uint32_t)value;
	return good;
}

static bool read_size(const cJSON *object, const char *name, uint32_t out[3])
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, name);

	for (int i = 0; i < 3; i++) {
		const cJSON *item = cJSON_GetArrayItem(array, i);
		double value;
		if (!item || !read_value(item, UINT32_MAX, &value))
			return false;
		out[i] = (uint32_t)value;
	}
	return cJSON_GetArraySize(array) == 3;
}

static enum weir_form form_of(const char *name)
{
	enum weir_form form = WEIR_NATIVE;

	while (form < WEIR_FORM_COUNT && !(name && strcmp(name, weir_form_name(form)) == 0))
		form++;
	return form;
}

static bool read_choice(const cJSON *object, struct weir_profile_choice *out)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "form"));
	enum weir_form form = form_of(name);
	uint32_t build;
	double ratio;

	*out = (struct weir_profile_choice){.form = (uint8_t)form};
	if (form == WEIR_NATIVE || form == WEIR_FORM_COUNT)
		return form == WEIR_NATIVE;
	if (!read_u32(object, "build", &build) || build > UINT8_MAX ||
	    !read_u32(object, "chunk", &out->chunk) ||
	    !read_u32(object, "workers", &out->workers) ||
	    !read_value(cJSON_GetObjectItemCaseSensitive(object, "ratio"), 1000, &ratio))
		return false;
	out->build = (uint8_t)build;
	out->ratio = (uint32_t)(ratio * 1e6 + 0.5);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "ahead")))
		out->flags |= WEIR_PROFILE_AHEAD;
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "apart")))
		out->flags |= WEIR_PROFILE_APART;
	return true;
}

static bool read_choices(const cJSON *object, struct weir_profile_choice *out)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, "choices");

	for (int i = 0; i < WEIR_PROFILE_CHOICES; i++)
		if (!read_choice(cJSON_GetArrayItem(array, i), &out[i]))
			return false;
	return cJSON_GetArraySize(array) == WEIR_PROFILE_CHOICES;
}

static const char *text_of(const cJSON *object, const char *name, const char *standard)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? text : standard;
}

static bool read_values(const cJSON *object, struct weir_profile *out)
{
	struct weir_profile_geometry *geometry = &out->geometry;

	*out = (struct weir_profile){0};
	return read_size(object, "grid", geometry->grid) &&
	       read_size(object, "block", geometry->block) &&
	       read_u32(object, "shared", &geometry->shared) &&
	       read_u32(object, "sms", &geometry->sms) &&
	       read_u32(object, "latencyMicroseconds", &geometry->latency) &&
	       read_u64(object, "nativeNanoseconds", &out->native) &&
	       read_u64(object, "evictionNanoseconds", &out->eviction_cost) &&
	       read_u32(object, "samples", &out->samples) &&
	       yield_found_parse(text_of(object, "yields", "unknown"), &out->yields) &&
	       read_choices(object, out->choices) && weir_profile_is_sane(out);
}

const char *profile_json_read(const cJSON *object, const char *scope, struct profile_key *key,
			      struct weir_profile *values)
{
	const char *own = text_of(object, "namespace", PROFILES_EVERYBODY);
	const char *kernel = text_of(object, "kernel", "");
	struct digest digest;

	if (!cJSON_IsObject(object))
		return "a profile is an object";
	if (!digest_parse(&digest, kernel, strlen(kernel)))
		return "`kernel` must be 64 hexadecimal digits";
	scope = scope ? scope : own;
	if (!*scope || !profile_key_make(key, scope, text_of(object, "gpu", ""), &digest))
		return "`namespace` or `gpu` is too long";
	return read_values(object, values) ? NULL : "a number is missing or out of range";
}
