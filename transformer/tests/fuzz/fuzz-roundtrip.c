/* Functions that are not rewritten stay byte for byte. Reprinted text parses to the same IR. */
#include "weir/transform.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_transform_options keep = {0}, reprint = {.reprint = true};
	struct weir_error error;
	size_t same_len, out_len, again_len;
	char *same, *out, *again;

	if (weir_transform(&same, &same_len, (const char *)data, len, &keep, &error))
		return 0;
	assert(same_len == len && !memcmp(same, data, len));
	free(same);
	if (weir_transform(&out, &out_len, (const char *)data, len, &reprint, &error))
		return 0;
	assert(!weir_transform(&again, &again_len, out, out_len, &reprint, &error));
	assert(again_len == out_len && !memcmp(again, out, out_len));
	free(again);
	free(out);
	return 0;
}
