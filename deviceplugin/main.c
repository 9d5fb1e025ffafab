/* weir-device-plugin: hands out shares of this node's GPUs to the kubelet. */
#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "plugin.h"
#include "weir/base.h"
#include "weir/log.h"
#include "weir/loop.h"

const char *argp_program_version = "weir-device-plugin " WEIR_VERSION;

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

static struct loop loop;

static void raised(struct loop_signals *signals, int number)
{
	(void)signals;
	log_info("%s; stopping", strsignal(number));
	loop_stop(&loop);
}

static int serve(const struct config *config)
{
	static const int numbers[] = {SIGTERM, SIGINT};
	struct loop_signals signals;
	struct plugin plugin;

	int r = loop_init(&loop);
	if (r < 0)
		return r;
	/* Before gRPC's threads, which inherit the blocked signals. */
	r = loop_signals_init(&signals, &loop, numbers, countof(numbers), raised);
	if (r == 0) {
		r = plugin_init(&plugin, &loop, config);
		if (r == 0) {
			r = loop_run(&loop);
			plugin_deinit(&plugin);
		}
		loop_signals_deinit(&signals);
	}
	loop_deinit(&loop);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	cleanup(config_deinit) struct config config = {0};
	char message[512] = "out of memory";

	log_init("weir-device-plugin", LOG_INFO);
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	int r = options.config ? config_load(&config, options.config, message, sizeof(message))
			       : config_init(&config);
	if (r < 0) {
		log_error("%s", message);
		return 2;
	}
	if (options.check_only) {
		printf("%s: ok\n", options.config ? options.config : "defaults");
		return 0;
	}
	log_init("weir-device-plugin", config.log_level);
	signal(SIGPIPE, SIG_IGN);
	umask(077); /* our socket is for the kubelet alone */

	r = serve(&config);
	if (r < 0)
		log_error("stopped: %s", strerror(-r));
	return r < 0 ? 1 : 0;
}
