/* Levels without Kubernetes: the first rule of the configuration that fits user and cgroup. Pure.
 */
#pragma once

#include "config.h"
#include "container.h"
#include "level.h"

void rules_decide(struct level_decision *out, const struct config *config,
		  const struct container_identity *identity);
