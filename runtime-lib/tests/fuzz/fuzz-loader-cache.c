/* Any bytes as the loader's cache: a path that is found lies inside it, with its end. */
#include "shim/loader-cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own: sanitizers see where it ends. */
	char *bytes = malloc(size ? size : 1);
	const char *path;

	memcpy(bytes, data, size);
	for (size_t at = 0; (path = loader_cache_next(bytes, size, "libcuda.so.1", &at));)
		if (path < bytes || path + strlen(path) >= bytes + size)
			abort();
	free(bytes);
	return 0;
}
