/* `weirctl explain POD`: why a pod is pending, refused, has its level, or is slow, in sentences. */
#pragma once

#include <cjson/cJSON.h>

#include "daemon/decider.h"
#include "daemon/report.h"

struct explain_input {
	struct decider *decider;
	struct report *report;
	const char *config_mistake; /* empty: none */
};

/* @name: [NAMESPACE/]NAME, or NULL. Adds `text` to @answer, or `fetching`: the caller asks again
 * soon. Returns NULL, or what is wrong. */
const char *explain_answer(const struct explain_input *input, const char *name, cJSON *answer);
