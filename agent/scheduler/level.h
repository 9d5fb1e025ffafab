/* Which level a client has. Pure: what is known of its pod in, level and reason out. */
#pragma once

#include "config/config.h"
#include "kubernetes/container.h"

#include <stdbool.h>
#include <stdint.h>

/* NULL and "" both mean that there is none. */
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

/* Where annotations may raise. NULL: nowhere. */
bool level_may_raise(const struct config_levels *config, const char *namespace_);
void level_decide(struct level_decision *out, const struct config_levels *config,
		  const struct level_input *input);
