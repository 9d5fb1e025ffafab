/* weir-device-plugin: offers shares of this node's GPUs to the kubelet. */
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "library-hold.h"
#include "metrics.h"
#include "plugin.h"
#include "weir/base.h"
#include "weir/file-watch.h"
#include "weir/log.h"
#include "weir/loop.h"

__attribute__((visibility("default"))) const char *argp_program_version =
	"weir-device-plugin " WEIR_VERSION;

struct options {
	const char *config;
	bool check_only;
};

static const struct argp_option option_list[] = {
	{"config", 'c', "FILE", 0, "Read the configuration from FILE", 0},
	{"check-config", 'k', NULL, 0, "Check the configuration and exit", 0},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'c':
		options->config = argument;
		return 0;
	case 'k':
		options->check_only = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no arguments expected, got '%s'", argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse_option,
	.doc = "Offers shares of this node's GPUs to the kubelet as an extended resource.",
};

/* One run of the plugin with one configuration. A new configuration starts the next run: the plugin
 * registers with the kubelet again; containers notice nothing. The state of the GPUs passes to the
 * next run. */
struct life {
	struct loop loop;
	struct loop_signals signals;
	struct file_watch watch;
	struct plugin plugin;
	const struct options *options;
	const char *text; /* of the configuration file */
	bool refused;     /* the file read last has a mistake */
	bool renewed;     /* the next run uses @next and @next_text */
	struct config next;
	char *next_text;
};

/* A mistake in the file is logged, and the current configuration stays in force. */
static void look_at_config(struct life *life, bool always)
{
	const char *path = life->options->config;
	cleanup(freep) char *text = NULL;
	char message[512] = "out of memory";

	if (!path || life->renewed)
		return;
	int r = config_load(&life->next, path, &text, message, sizeof(message));
	life->refused = r < 0;
	if (text && !always && strcmp(text, life->text) == 0) {
		if (r == 0)
			config_deinit(&life->next);
		return;
	}
	if (r < 0) {
		log_error("%s; the previous configuration stays in force", message);
		return;
	}
	log_info("%s: changed; registering again", path);
	life->next_text = take(text);
	life->renewed = true;
	loop_stop(&life->loop);
}

static void file_changed(struct file_watch *watch)
{
	look_at_config(container_of(watch, struct life, watch), false);
}

static void raised(struct loop_signals *signals, int number)
{
	struct life *life = container_of(signals, struct life, signals);

	if (number == SIGHUP) {
		look_at_config(life, true);
		return;
	}
	log_info("%s; stopping", strsignal(number));
	loop_stop(&life->loop);
}

static int live(struct life *life, const struct config *config, const struct inventory *before)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	int r = loop_init(&life->loop);
	if (r < 0)
		return r;
	/* Before gRPC starts its threads, which must inherit the blocked signals. */
	r = loop_signals_init(&life->signals, &life->loop, numbers, countof(numbers), raised);
	if (r == 0 && life->options->config) {
		r = file_watch_init(&life->watch, &life->loop, life->options->config, file_changed);
		/* The file may have changed before the watch started. */
		if (r == 0)
			look_at_config(life, false);
	}
	life->plugin.inventory = *before;
	if (r == 0 && !life->renewed) {
		r = plugin_init(&life->plugin, &life->loop, config, before);
		if (r == 0) {
			metrics_serve(&life->plugin, &life->loop, &life->refused);
			r = loop_run(&life->loop);
			plugin_deinit(&life->plugin);
		}
	}
	file_watch_deinit(&life->watch);
	loop_signals_deinit(&life->signals);
	loop_deinit(&life->loop);
	return r;
}

/* One run after another. Takes @config and @text. */
static int serve(const struct options *options, struct config *config, char *text)
{
	static struct life life;
	static struct inventory before; /* empty for the first run */
	int r;

	do {
		log_init("weir-device-plugin", config->log_level);
		life = (struct life){.options = options, .text = text};
		r = live(&life, config, &before);
		before = life.plugin.inventory;
		config_deinit(config);
		free(text);
		*config = life.next;
		text = life.next_text;
	} while (r == 0 && life.renewed);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	struct config config = {0};
	char message[512] = "out of memory";
	cleanup(freep) char *text = NULL;

	log_init("weir-device-plugin", LOG_INFO);
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	int r = options.config
			? config_load(&config, options.config, &text, message, sizeof(message))
			: config_init(&config);
	if (r < 0) {
		log_error("%s", message);
		return 2;
	}
	if (options.check_only) {
		printf("%s: ok\n", options.config ? options.config : "defaults");
		config_deinit(&config);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	umask(077); /* only the kubelet may connect to our socket */
	log_init("weir-device-plugin", config.log_level);
	library_hold(&config);

	r = serve(&options, &config, take(text));
	if (r < 0)
		log_error("stopped: %s", strerror(-r));
	return r < 0 ? 1 : 0;
}
