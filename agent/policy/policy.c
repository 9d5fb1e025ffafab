#include "policy/policy.h"

#include <string.h>

#include "weir/base.h"

static const struct policy *const policies[] = {
#define POLICY(name) &policy_##name,
#include "policy/policies.def"
#undef POLICY
};

const struct policy_settings policy_defaults = {
	.quantum = 10 * NS_PER_MS,
	.min_quantum = NS_PER_MS,
	.cost = NS_PER_MS / 5,
	.min_timer = NS_PER_MS / 5,
	.late = NS_PER_MS + NS_PER_MS / 5,
	.max_overhead = 30000,
};

const struct policy *policy_find(const char *name)
{
	for (size_t i = 0; i < countof(policies); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

const char *policy_names(void)
{
	static const char names[] = ""
#define POLICY(name) ", " #name
#include "policy/policies.def"
#undef POLICY
		;

	return names + strlen(", ");
}
