#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "config.h"
#include "plugin.h"

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_gpus(FILE *out, const struct plugin *plugin)
{
	const struct inventory *inventory = &plugin->inventory;

	head(out, "weir_plugin_shares", "gauge",
	     "Shares offered to the kubelet, by GPU and health.");
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		const struct gpu *gpu = &inventory->gpus[i];
		fprintf(out, "weir_plugin_shares{gpu=\"%s\",healthy=\"%s\"} %u\n", gpu->uuid,
			gpu->healthy ? "true" : "false",
			config_for_gpu(plugin->config, gpu).shares);
	}
}

static void write_counters(FILE *out, const struct plugin_counters *counters)
{
	static const char name[] = "weir_plugin_allocations_total";

	head(out, name, "counter", "Containers for which the kubelet asked, by result.");
	fprintf(out, "%s{result=\"allocated\"} %" PRIu64 "\n", name, counters->allocated);
	fprintf(out, "%s{result=\"refused\"} %" PRIu64 "\n", name, counters->refused);
	fprintf(out, "%s{result=\"waiting\"} %" PRIu64 "\n", name, counters->waiting);
}

/* The kubelet knows the plugin, and has its stream. */
static bool is_connected(const struct plugin *plugin)
{
	return plugin->registered && plugin->watched_since;
}

static int write_all(void *userdata, FILE *out)
{
	const struct plugin *plugin = userdata;

	head(out, "weir_plugin_registered", "gauge", "1: the kubelet knows the plugin.");
	fprintf(out, "weir_plugin_registered %d\n", is_connected(plugin));
	head(out, "weir_plugin_config_last_reload_successful", "gauge",
	     "0: the file has a mistake, and the plugin keeps the previous configuration.");
	fprintf(out, "weir_plugin_config_last_reload_successful %d\n", !*plugin->config_refused);
	write_gpus(out, plugin);
	write_counters(out, &plugin->service.counters);
	return 0;
}

static const char *condition(void *userdata, bool *ready)
{
	const struct plugin *plugin = userdata;

	*ready = is_connected(plugin);
	return *ready ? "ok" : "the kubelet does not know the plugin yet";
}

void metrics_serve(struct plugin *plugin, struct loop *loop, const bool *config_refused)
{
	plugin->config_refused = config_refused;
	plugin->pages = (struct http_pages){write_all, condition, plugin};
	http_new(&plugin->http, loop, plugin->config->metrics_address, &plugin->pages);
}
