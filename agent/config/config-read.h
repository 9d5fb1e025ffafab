/* What the table of the whole configuration shares with that of a GPU. */
#pragma once

#include "weir/yaml.h"

/* char *, a policy's name. */
int config_read_policy(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target);
/* `scheduling:`, of a struct policy_settings. */
extern const struct yaml_field config_scheduling_fields[];
