/* Levels without Kubernetes: the first rule of the configuration that fits user and cgroup. Pure.
 */
#pragma once

#include "config/config.h"
#include "kubernetes/container.h"
#include "scheduler/level.h"

/* The rule; NULL: none fits. */
const struct config_rule *rules_decide(struct level_decision *out, const struct config *config,
				       const struct container_identity *identity);
