#include "daemon/reload.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/agent.h"
#include "config/config.h"
#include "common/metric.h"

#include "weir/base.h"
#include "weir/log.h"

/* A double, which is what a metric is, has room for 53 bits. */
static uint64_t hash_of(const char *text, size_t size)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	uint64_t hash = 0;

	SHA256((const unsigned char *)text, size, digest);
	for (size_t i = 0; i < 6; i++)
		hash = hash << 8 | digest[i];
	return hash;
}

void agent_configure_gpu(struct agent *agent, struct gpu *gpu)
{
	const struct gpu_traits traits = {gpu->id, gpu->index, gpu->name};
	struct config_gpu_settings settings = config_for_gpu(&agent->config, &traits);

	scheduler_configure(&agent->scheduler, gpu, settings.policy, &settings.scheduling);
	mps_want(&agent->mps, gpu->id, settings.mode == GPU_MODE_MPS);
}

static void apply(struct agent *agent)
{
	const struct config *config = &agent->config;
	struct tenant *tenant;
	struct gpu *gpu;

	if (!getenv("WEIR_LOG"))
		log_set_level(config->log_level);
	agent->memories.max = config->clients;
	agent_raise_limits(agent);
	scheduler_take(&agent->scheduler, config->gpu.policy, &config->gpu.scheduling);
	for (gpu = agent->gpus.all; gpu; gpu = gpu->hh.next)
		agent_configure_gpu(agent, gpu);
	agent_mark_limits(agent);
	/* Processes with memory need not be connected. */
	for (tenant = agent->tenants.all; tenant; tenant = tenant->hh.next) {
		agent_decide(agent, tenant);
		agent_apply_limits(agent, tenant);
	}
}

static void take_config(struct reload *reload, struct config *next, uint64_t hash)
{
	config_apply(&reload->agent->config, next, reload->waiting, sizeof(reload->waiting));
	config_deinit(next);
	apply(reload->agent);
	reload->hash = hash;
	reload->loaded = (int64_t)time(NULL);
	reload->failed = false;
	reload->good++;
	log_info("%s: taken", reload->path);
	if (*reload->waiting)
		log_warning("%s: waits for the agent's next start: %s", reload->path,
			    reload->waiting);
}

static void refuse(struct reload *reload, const char *message)
{
	reload->failed = true;
	reload->bad++;
	log_error("%s; the configuration from before stays in force", message);
}

/* @always: also if it is what was read last. */
static void read_anew(struct reload *reload, bool always)
{
	cleanup(freep) char *text = NULL;
	char message[512] = "out of memory";
	struct config next;
	size_t size;

	if (!reload->path) {
		log_warning("there is no configuration file to be read again");
		return;
	}
	int r = yaml_load_file(reload->path, CONFIG_FILE_MAX, &text, &size, message,
			       sizeof(message));
	uint64_t hash = r < 0 ? 0 : hash_of(text, size);
	if (!always && hash == reload->tried)
		return;
	reload->tried = hash;
	if (r == 0)
		r = config_parse(&next, reload->path, text, size, message, sizeof(message));
	if (r < 0)
		refuse(reload, message);
	else
		take_config(reload, &next, hash);
}

void reload_now(struct reload *reload)
{
	read_anew(reload, true);
}

static void changed(struct file_watch *watch)
{
	read_anew(container_of(watch, struct reload, watch), false);
}

int reload_init(struct reload *reload, struct agent *agent, const char *path)
{
	*reload = (struct reload){.agent = agent, .path = path, .loaded = (int64_t)time(NULL)};
	if (!path)
		return 0;
	int r = file_watch_init(&reload->watch, &agent->loop, path, changed);
	if (r < 0)
		return r;
	/* It may be another one than the agent began with, and nobody will tell of that change. */
	read_anew(reload, true);
	reload->good = 0;
	return 0;
}

void reload_deinit(struct reload *reload)
{
	file_watch_deinit(&reload->watch);
}

static uint64_t successful(const void *object)
{
	return !((const struct reload *)object)->failed;
}

static uint64_t restart_needed(const void *object)
{
	return *((const struct reload *)object)->waiting != '\0';
}

#define AT(member) METRIC_AT(struct reload, member)

static const struct metric reload_metrics[] = {
	{"weir_config_last_reload_successful",
	 "0: the file has a mistake, and the agent keeps the previous configuration.", METRIC_GAUGE,
	 .get = successful},
	{"weir_config_last_reload_success_timestamp_seconds",
	 "When the configuration in force was read.", METRIC_GAUGE, AT(loaded)},
	{"weir_config_hash", "48 bits of the SHA-256 of the file in force.", METRIC_GAUGE,
	 AT(hash)},
	{"weir_config_restart_needed",
	 "1: the file has changes that only a restart of the agent applies.", METRIC_GAUGE,
	 .get = restart_needed},
	{0},
};

void reload_metrics_write(FILE *out, const struct reload *reload)
{
	const struct metric_objects objects = {.first = reload};

	metric_write_table(out, reload_metrics, &objects);
	metric_head(out, "weir_config_reloads_total", "counter",
		    "Times that the file was read again, by result.");
	fprintf(out,
		"weir_config_reloads_total{result=\"taken\"} %llu\n"
		"weir_config_reloads_total{result=\"refused\"} %llu\n",
		(unsigned long long)reload->good, (unsigned long long)reload->bad);
}
