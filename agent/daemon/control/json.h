/* Answers to weirctl: numbers, texts and times in an object. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#include "weir/base.h"

static inline void json_add_number(cJSON *object, const char *name, uint64_t value)
{
	cJSON_AddNumberToObject(object, name, (double)value);
}

/* Whatever bytes it has: clients name themselves. */
static inline void json_add_text(cJSON *object, const char *name, const char *text)
{
	cleanup(freep) char *mended = strdup(text);

	if (mended) {
		text_mend(mended);
		cJSON_AddStringToObject(object, name, mended);
	}
}

static inline void json_add_seconds(cJSON *object, const char *name, uint64_t ns)
{
	cJSON_AddNumberToObject(object, name, (double)ns / 1e9);
}
