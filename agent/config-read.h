/* Readers of single values that several tables of the configuration have. */
#pragma once

#include "weir/yaml.h"

/* char *, a policy's name. */
int config_read_policy(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target);
/* uint64_t, in ns; an aging may be POLICY_NEVER. */
int config_read_duration(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target);
int config_read_aging(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target);
/* uint32_t, in millionths. */
int config_read_overhead(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target);
