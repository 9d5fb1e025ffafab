#include "daemon/reload.h"

#include <openssl/sha.h>

#include "config/config.h"
#include "common/metric.h"

#include "weir/base.h"
#include "weir/log.h"

/* A metric is a double, which has room for 53 bits. */
static uint64_t hash_of(const char *text, size_t size)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	uint64_t hash = 0;

	SHA256((const unsigned char *)text, size, digest);
	for (size_t i = 0; i < 6; i++)
		hash = hash << 8 | digest[i];
	return hash;
}

static void take_config(struct reload *reload, struct config *next, uint64_t hash)
{
	config_apply(reload->config, next, reload->waiting, sizeof(reload->waiting));
	config_deinit(next);
	reload->apply(reload);
	reload->hash = hash;
	reload->loaded = (int64_t)time(NULL);
	*reload->mistake = '\0';
	reload->good++;
	log_info("%s: taken", reload->path);
	if (*reload->waiting)
		log_warning("%s: waits for the agent's next start: %s", reload->path,
			    reload->waiting);
}

static void refuse(struct reload *reload, const char *message)
{
	snprintf(reload->mistake, sizeof(reload->mistake), "%s", message);
	reload->bad++;
	log_error("%s; the configuration from before stays in force", message);
	reload->refused(reload);
}

/* @always: even if the file has not changed. */
static void read_again(struct reload *reload, bool always)
{
	cleanup(freep) char *text = NULL;
	char message[512] = "out of memory";
	struct config next;
	size_t size;

	if (!reload->path) {
		log_warning("there is no configuration file to read again");
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
	read_again(reload, true);
}

static void changed(struct file_watch *watch)
{
	read_again(container_of(watch, struct reload, watch), false);
}

int reload_init(struct reload *reload, struct loop *loop, struct config *config, const char *path,
		reload_fn *apply, reload_fn *refused)
{
	*reload = (struct reload){.config = config,
				  .apply = apply,
				  .refused = refused,
				  .path = path,
				  .loaded = (int64_t)time(NULL)};
	if (!path)
		return 0;
	int r = file_watch_init(&reload->watch, loop, path, changed);
	if (r < 0)
		return r;
	/* A change between the agent's start and the watch is not reported. */
	read_again(reload, true);
	reload->good = 0;
	return 0;
}

void reload_deinit(struct reload *reload)
{
	file_watch_deinit(&reload->watch);
}

static uint64_t successful(const void *object)
{
	return *((const struct reload *)object)->mistake == '\0';
}

static uint64_t restart_needed(const void *object)
{
	return *((const struct reload *)object)->waiting != '\0';
}

#define AT(member) METRIC_AT(struct reload, member)

static const struct metric reload_metrics[] = {
	{"weir_config_last_reload_successful",
	 "0: the file has a mistake, and the agent keeps the previous configuration.",
	 .get = successful},
	{"weir_config_last_reload_success_timestamp_seconds",
	 "When the configuration in force was read.", AT(loaded)},
	{"weir_config_hash", "48 bits of the SHA-256 of the file in force.", AT(hash)},
	{"weir_config_restart_needed",
	 "1: the file has changes that only a restart of the agent applies.",
	 .get = restart_needed},
	{0},
};

void reload_metrics_write(FILE *out, const struct reload *reload)
{
	metric_write_table(out, reload_metrics, METRIC_OBJECT(reload));
	metric_head(out, "weir_config_reloads_total",
		    "Times that the file was read again, by result.");
	fprintf(out,
		"weir_config_reloads_total{result=\"taken\"} %llu\n"
		"weir_config_reloads_total{result=\"refused\"} %llu\n",
		(unsigned long long)reload->good, (unsigned long long)reload->bad);
}
