/* weir-agent: decides who may use a node's GPUs now. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "daemon/agent.h"
#include "hardware/freeze-watch.h"

#include "weir/log.h"

__attribute__((visibility("default"))) const char *argp_program_version =
	"weir-agent " WEIR_VERSION;

enum { OPTION_CHECK = 0x100 };

struct arguments {
	const char *config;
	bool standalone, check;
};

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'c':
		arguments->config = value;
		return 0;
	case 's':
		arguments->standalone = true;
		return 0;
	case OPTION_CHECK:
		arguments->check = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "Configuration (YAML); without it, the defaults", 0},
	{"standalone", 's', NULL, 0, "Without Kubernetes: levels by user and cgroup", 0},
	{"check-config", OPTION_CHECK, NULL, 0, "Only say whether the configuration is good", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.doc = "Decides which processes may use this node's GPUs now.",
};

int main(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct config config;
	struct agent agent;
	char message[512] = "no memory";

	argp_parse(&description, argc, argv, 0, NULL, &arguments);
	log_init("weir-agent", LOG_INFO);
	int r = config_load(&config, arguments.config, message, sizeof(message));
	if (r < 0) {
		log_error("%s", message);
		return 2;
	}
	if (arguments.check) {
		config_deinit(&config);
		printf("%s: ok\n", arguments.config ? arguments.config : "defaults");
		return 0;
	}
	log_init("weir-agent", config.log_level);
	r = freeze_watch_start(config.state_dir);
	if (r < 0)
		log_warning("stopped processes stay so if the agent is killed: %s", strerror(-r));
	r = agent_init(&agent, &config, arguments.standalone);
	if (r < 0)
		return 1;
	r = agent_follow(&agent, arguments.config);
	if (r == 0)
		r = loop_run(&agent.loop);
	agent_deinit(&agent);
	return r < 0;
}
