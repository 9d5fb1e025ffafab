/* Any text as a kubeconfig: accepted, or refused with one line. */
#include "kubernetes/kubeconfig.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubeconfig config;
	char message[256] = "", token[256];

	if (kubeconfig_parse(&config, (const char *)data, size, "/folder", message,
			     sizeof(message)) < 0) {
		if (!message[0])
			abort();
		return 0;
	}
	if (!config.server)
		abort();
	if (!config.token_file && kubeconfig_token(&config, token, sizeof(token)) == 0 &&
	    strpbrk(token, "\r\n"))
		abort();
	kubeconfig_deinit(&config);
	return 0;
}
