#include "sim-play.h"

#include <string.h>

struct sim_options options_for(const char *policy)
{
	struct sim_options options = sim_defaults;

	options.policy = policy_find(policy);
	options.settings = policy_defaults;
	options.look = options.late = options.window = 0;
	options.mps = true;
	return options;
}

struct sim_result play(const char *text, struct sim_options options)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct sim_result result;
	struct trace trace;
	char message[256];

	assert_non_null(in);
	assert_int_equal(trace_read(&trace, in, "trace", message, sizeof(message)), 0);
	fclose(in);
	options.end = trace.end;
	assert_int_equal(sim_run(&result, &trace, &options), 0);
	trace_deinit(&trace);
	return result;
}
