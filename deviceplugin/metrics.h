/* What the plugin does, for /metrics and /readyz. */
#pragma once

struct loop;
struct plugin;

/* Opens the port for /metrics and /readyz, as configured. Without it the plugin does its work all
 * the same; the log says so. */
void metrics_serve(struct plugin *plugin, struct loop *loop);
