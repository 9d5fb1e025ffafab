#include "scheduler/level.h"

#include <stdio.h>
#include <string.h>

static bool given(const char *text)
{
	return text && *text;
}

static uint8_t qos_level(const struct config_levels *config, enum container_qos qos)
{
	const uint8_t levels[] = {[CONTAINER_QOS_NONE] = config->by_default,
				  [CONTAINER_QOS_BEST_EFFORT] = config->best_effort,
				  [CONTAINER_QOS_BURSTABLE] = config->burstable,
				  [CONTAINER_QOS_GUARANTEED] = config->guaranteed};

	return levels[qos];
}

static const struct config_class *find_class(const struct config_levels *config, const char *name)
{
	for (size_t i = 0; i < config->n_classes; i++)
		if (strcmp(config->classes[i].name, name) == 0)
			return &config->classes[i];
	return NULL;
}

bool level_may_raise(const struct config_levels *config, const char *namespace_)
{
	for (size_t i = 0; namespace_ && i < config->n_raise; i++)
		if (strcmp(config->raise[i], namespace_) == 0)
			return true;
	return false;
}

/* Ignores the annotation. */
static void decide_class(struct level_decision *out, const struct config_levels *config,
			 const struct level_input *input)
{
	const struct config_class *class = input->known_pod && given(input->priority_class)
						   ? find_class(config, input->priority_class)
						   : NULL;

	out->level = class ? class->level : qos_level(config, input->qos);
	if (class)
		snprintf(out->reason, sizeof(out->reason), "PriorityClass %.64s", class->name);
	else if (input->qos != CONTAINER_QOS_NONE)
		snprintf(out->reason, sizeof(out->reason), "QoS class %s",
			 container_qos_name(input->qos));
	else
		snprintf(out->reason, sizeof(out->reason), "default: QoS class unknown");
}

void level_decide(struct level_decision *out, const struct config_levels *config,
		  const struct level_input *input)
{
	struct level_decision decision = {0};
	uint8_t wanted;

	decide_class(&decision, config, input);
	*out = decision;
	if (!input->known_pod || !given(input->annotation))
		return;
	if (!config_level_parse(input->annotation, &wanted)) {
		snprintf(out->reason, sizeof(out->reason), "%.60s (annotation %.24s is no level)",
			 decision.reason, input->annotation);
	} else if (wanted > decision.level && !level_may_raise(config, input->namespace_)) {
		out->annotation_refused = true;
		snprintf(out->reason, sizeof(out->reason),
			 "%.60s (annotation %s refused: namespace may not raise)", decision.reason,
			 config_level_name(wanted));
	} else {
		out->level = wanted;
		snprintf(out->reason, sizeof(out->reason), "annotation %s",
			 config_level_name(wanted));
	}
}

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

static bool rule_fits(const struct config_rule *rule, const struct container_identity *identity)
{
	return (!rule->has_uid || rule->uid == identity->uid) &&
	       (!rule->cgroup || cgroup_fits(rule->cgroup, identity->cgroup));
}

const struct config_rule *level_by_rule(struct level_decision *out, const struct config *config,
					const struct container_identity *identity)
{
	for (size_t i = 0; i < config->n_rules; i++) {
		if (!rule_fits(&config->rules[i], identity))
			continue;
		*out = (struct level_decision){.level = config->rules[i].level};
		snprintf(out->reason, sizeof(out->reason), "rule %zu", i + 1);
		return &config->rules[i];
	}
	*out = (struct level_decision){.level = config->levels.by_default};
	snprintf(out->reason, sizeof(out->reason), "no rule fits");
	return NULL;
}
