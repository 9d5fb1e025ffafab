/* Any text as a configuration: accepted with every value in its range, or refused with line and
 * column.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

#include "weir/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct config *config)
{
	const struct config_levels *levels = &config->levels;

	if (config->socket[0] != '/' || config->state_dir[0] != '/' ||
	    config->control_socket[0] != '/' || !config->gpu.policy || config->clients == 0 ||
	    config->clients_per_container == 0)
		abort();
	if (config->compile.mode > COMPILE_OFF || config->compile.helpers == 0 ||
	    config->compile.memory_mib < 256 || config->compile.seconds == 0 ||
	    config->compile.cache_mib == 0 ||
	    (*config->compile.cache_dir && config->compile.cache_dir[0] != '/') ||
	    (*config->compile.program && config->compile.program[0] != '/'))
		abort();
	if (levels->by_default >= WEIR_LEVELS || levels->best_effort >= WEIR_LEVELS ||
	    levels->burstable >= WEIR_LEVELS || levels->guaranteed >= WEIR_LEVELS)
		abort();
	for (size_t i = 0; i < levels->n_classes; i++)
		if (!levels->classes[i].name || levels->classes[i].level >= WEIR_LEVELS)
			abort();
	for (size_t i = 0; i < levels->n_raise; i++)
		if (!levels->raise[i])
			abort();
	for (size_t i = 0; i < config->n_rules; i++)
		if (config->rules[i].level >= WEIR_LEVELS || config->rules[i].share > 100)
			abort();
	if (config->gpu.scheduling.max_overhead == 0 || config->gpu.scheduling.min_quantum == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char message[256] = "";
	struct config config;

	if (config_parse(&config, "f", (const char *)data, size, message, sizeof(message)) < 0) {
		if (strncmp(message, "f:", 2) != 0)
			abort();
		return 0;
	}
	check(&config);
	config_deinit(&config);
	return 0;
}
