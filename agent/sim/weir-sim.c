/* weir-sim: runs a policy on a trace of arrivals, on a simulated GPU. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "weir/units.h"
#include "sim/sim.h"

#include "weir/base.h"

__attribute__((visibility("default"))) const char *argp_program_version = "weir-sim " WEIR_VERSION;

#define DEFAULT_END 60000000000ull

struct arguments {
	const char *trace;
	struct sim_options options;
	uint32_t rows;
	bool json;
};

/* Options that are durations. With runs or slices of no length virtual time might stand still. */
static const struct {
	int key;
	size_t offset;
	uint64_t min;
} durations[] = {
	{'f', offsetof(struct arguments, options.end)},
	{'a', offsetof(struct arguments, options.settings.aging)},
	{'q', offsetof(struct arguments, options.settings.quantum), 1},
	{'m', offsetof(struct arguments, options.settings.min_quantum), 1},
	{'e', offsetof(struct arguments, options.evict)},
	{'k', offsetof(struct arguments, options.look)},
	{'t', offsetof(struct arguments, options.late)},
	{'l', offsetof(struct arguments, options.slice), 1},
	{'x', offsetof(struct arguments, options.switching)},
	{'y', offsetof(struct arguments, options.settings.cost), 1},
	{'w', offsetof(struct arguments, options.window)},
};

static bool parse_duration(int key, const char *value, struct argp_state *state)
{
	for (size_t i = 0; i < countof(durations); i++) {
		if (durations[i].key != key)
			continue;
		uint64_t *duration = (uint64_t *)((char *)state->input + durations[i].offset);
		if (!duration_parse(value, durations[i].min, DURATION_MAX, duration))
			argp_error(state, "expected a duration like 250us or 1h, not `%s`", value);
		return true;
	}
	return false;
}

static uint64_t parse_number(const char *value, uint64_t min, uint64_t max,
			     struct argp_state *state)
{
	uint64_t number = 0;

	if (!number_parse(value, min, max, &number))
		argp_error(state, "expected a number from %llu to %llu, not `%s`",
			   (unsigned long long)min, (unsigned long long)max, value);
	return number;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	if (key == 'a' && value && strcmp(value, "never") == 0) {
		arguments->options.settings.aging = POLICY_NEVER;
		return 0;
	}
	if (value && parse_duration(key, value, state))
		return 0;
	switch (key) {
	case 'p':
		arguments->options.policy = policy_find(value);
		if (!arguments->options.policy)
			argp_error(state, "expected a policy (%s), not `%s`", policy_names(),
				   value);
		return 0;
	case 'o':
		arguments->options.settings.max_overhead =
			10000 * (uint32_t)parse_number(value, 1, 100, state);
		return 0;
	case 's':
		arguments->options.seed = parse_number(value, 0, UINT64_MAX, state);
		return 0;
	case 'r':
		arguments->rows = (uint32_t)parse_number(value, 0, UINT32_MAX, state);
		return 0;
	case 'n':
		arguments->options.sms = (uint32_t)parse_number(value, 1, 65536, state);
		return 0;
	case 'c':
		arguments->options.mps = true;
		return 0;
	case 'g':
		arguments->options.hardware = true;
		return 0;
	case 'v':
		arguments->options.log = stdout;
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->trace)
			argp_error(state, "expected one trace");
		arguments->trace = value;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"policy", 'p', "NAME", 0, "Policy (whpf)", 0},
	{"for", 'f', "DURATION", 0, "Virtual time (the trace's end, else 1m)", 0},
	{"seed", 's', "N", 0, "Seed of all random numbers (1)", 0},
	{"json", 'j', NULL, 0, "Print JSON, not a table", 0},
	{"rows", 'r', "N", 0, "Number of clients to print (50)", 0},
	{"log", 'v', NULL, 0, "Print every event with its time in ms", 0},
	{0, 0, 0, 0, "Of the policy:", 1},
	{"aging", 'a', "DURATION", 0,
	 "A client that waited so long is next; or `never` (the policy's own)", 0},
	{"quantum", 'q', "DURATION", 0, "Of wfq, and of runs given for age (10ms)", 0},
	{"min-quantum", 'm', "DURATION", 0, "Shortest run of ffs and wfq (1ms)", 0},
	{"max-overhead", 'o', "PERCENT", 0, "Of ffs: time lost to switches (3)", 0},
	{"cost", 'y', "DURATION", 0, "Of a switch, as the policy estimates it (its true cost)", 0},
	{0, 0, 0, 0, "Of the machine:", 2},
	{"mps", 'c', NULL, 0, "Kernels of several clients run at the same time, as under MPS", 0},
	{"hardware", 'g', NULL, 0,
	 "Clients have channel groups: slices by weight, where the policy leaves it to them", 0},
	{"sms", 'n', "N", 0, "Multiprocessors of the GPU (132)", 0},
	{"evict", 'e', "DURATION", 0, "Time until a running kernel has left (100us)", 0},
	{"look", 'k', "DURATION", 0, "Time between the agent's looks at its clients (1ms)", 0},
	{"late", 't', "DURATION", 0, "Lateness of the agent's timers, at most (200us)", 0},
	{"slice", 'l', "DURATION", 0, "The hardware's time slice (2ms)", 0},
	{"switch", 'x', "DURATION", 0, "A context switch (190us)", 0},
	{"window", 'w', "DURATION", 0, "Window over which shares are compared (1s)", 0},
	{0},
};

static const struct argp description = {
	.options = options,
	.parser = parse,
	.args_doc = "TRACE",
	.doc = "Runs a trace of arrivals (`-`: from standard input) on a simulated GPU.",
};

static int read_trace(const char *path, struct trace *trace)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *in = standard ? stdin : fopen(path, "re");
	char message[256] = "no memory";

	if (!in) {
		fprintf(stderr, "weir-sim: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	int r = trace_read(trace, in, standard ? "stdin" : path, message, sizeof(message));
	if (r < 0)
		fprintf(stderr, "weir-sim: %s\n", message);
	if (!standard)
		fclose(in);
	return r;
}

static int flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "weir-sim: standard output: %s\n", strerror(errno));
	return -EIO;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.options = sim_defaults, .rows = 50};
	struct sim_options *chosen = &arguments.options;
	struct sim_result result;
	struct trace trace = {0};

	chosen->policy = &policy_whpf;
	chosen->settings = policy_defaults;
	chosen->settings.cost = 0;
	argp_parse(&description, argc, argv, 0, NULL, &arguments);
	if (read_trace(arguments.trace, &trace) < 0)
		return 2;
	if (!chosen->end)
		chosen->end = trace.end ? trace.end : DEFAULT_END;
	/* By default the policy estimates the true cost. */
	if (!chosen->settings.cost)
		chosen->settings.cost = chosen->evict + (chosen->mps ? 0 : chosen->switching);
	chosen->settings.late = chosen->look + chosen->late;
	int r = sim_run(&result, &trace, chosen);
	if (r < 0) {
		fprintf(stderr, "weir-sim: %s\n", strerror(-r));
	} else {
		if (arguments.json)
			sim_print_json(stdout, &trace, chosen, &result);
		else
			sim_print(stdout, &trace, chosen, &result, arguments.rows);
		sim_result_deinit(&result);
		r = flush();
	}
	trace_deinit(&trace);
	return r < 0;
}
