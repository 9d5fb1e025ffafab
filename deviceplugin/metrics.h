/* What the plugin does, for /metrics and /readyz. */
#pragma once

#include <stdbool.h>

struct loop;
struct plugin;

/* Opens the port for /metrics and /readyz, as configured. Without it the plugin does its work all
 * the same; the log says so. @config_refused: the configuration file has a mistake; read for each
 * answer. */
void metrics_serve(struct plugin *plugin, struct loop *loop, const bool *config_refused);
