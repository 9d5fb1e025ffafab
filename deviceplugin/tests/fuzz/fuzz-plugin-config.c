/* Any text as a configuration: accepted, or refused with one line. */
#include <assert.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config = {0};
	char message[512] = "";

	if (size > CONFIG_FILE_MAX)
		return 0;
	int r = config_parse(&config, "f", (const char *)data, size, message, sizeof(message));
	if (r == 0)
		assert(config_resource_name_valid(config.resource_name));
	else
		assert(message[0] && !memchr(message, '\n', strlen(message)));
	config_deinit(&config);
	return 0;
}
