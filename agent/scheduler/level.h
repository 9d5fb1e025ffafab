/* Which level a client has. Pure.
 *
 * In a cluster the first of these that is given decides: the pod's annotation; its PriorityClass,
 * if the configuration maps it; its QoS class. An annotation may always lower the level. It raises
 * the level only in the namespaces that the configuration names. Standalone, the first rule of the
 * configuration that fits user and cgroup decides. */
#pragma once

#include "config/config.h"
#include "kubernetes/container.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of a pod. NULL and "" both mean that there is none. */
struct level_input {
	const char *annotation;
	const char *namespace_;
	const char *priority_class;
	enum container_qos qos;
	bool known_pod; /* the three above are known; else only the QoS class counts */
};

struct level_decision {
	uint8_t level;
	char reason[128]; /* one line for people */
	bool annotation_refused;
};

/* Whether annotations in @namespace_ may raise; NULL: they may not. */
bool level_may_raise(const struct config_levels *config, const char *namespace_);
void level_decide(struct level_decision *out, const struct config_levels *config,
		  const struct level_input *input);
/* The rule that decided; NULL: none fits. */
const struct config_rule *level_by_rule(struct level_decision *out, const struct config *config,
					const struct container_identity *identity);
