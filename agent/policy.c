#include "policy.h"

#include <string.h>

#include "weir/base.h"

static const struct policy *const policies[] = {&policy_hpf};

const struct policy *policy_find(const char *name)
{
	for (size_t i = 0; i < countof(policies); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	return NULL;
}

const char *policy_names(void)
{
	return "hpf";
}
