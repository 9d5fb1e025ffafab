/* What the plugin does, for /metrics and /readyz. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct plugin;

/* For http_pages: @plugin is a struct plugin. */
int plugin_metrics(void *plugin, FILE *out);
const char *plugin_condition(void *plugin, bool *ready);
