#include "scheduler/rules.h"

#include <stdio.h>
#include <string.h>

/* @pattern: a path, which stands for itself and what is below it, or a prefix with `*` behind it.
 */
static bool cgroup_fits(const char *pattern, const char *cgroup)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return strncmp(pattern, cgroup, n - 1) == 0;
	while (n > 0 && pattern[n - 1] == '/')
		n--;
	return strncmp(pattern, cgroup, n) == 0 && (cgroup[n] == '\0' || cgroup[n] == '/');
}

static bool fits(const struct config_rule *rule, const struct container_identity *identity)
{
	return (!rule->has_uid || rule->uid == identity->uid) &&
	       (!rule->cgroup || cgroup_fits(rule->cgroup, identity->cgroup));
}

const struct config_rule *rules_decide(struct level_decision *out, const struct config *config,
				       const struct container_identity *identity)
{
	for (size_t i = 0; i < config->n_rules; i++) {
		if (!fits(&config->rules[i], identity))
			continue;
		*out = (struct level_decision){.level = config->rules[i].level};
		snprintf(out->reason, sizeof(out->reason), "rule %zu", i + 1);
		return &config->rules[i];
	}
	*out = (struct level_decision){.level = config->levels.by_default};
	snprintf(out->reason, sizeof(out->reason), "no rule fits");
	return NULL;
}
