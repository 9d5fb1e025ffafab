/* Rewrites a hostile text in all forms. Any output must parse. */
#include "weir/transform.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_transform_options all = {.forms = ~0u}, none = {0};
	struct weir_error error;
	size_t out_len, again_len;
	char *out, *again;

	if (weir_transform(&out, &out_len, (const char *)data, len, &all, &error))
		return 0;
	assert(!weir_transform(&again, &again_len, out, out_len, &none, &error));
	free(again);
	free(out);
	return 0;
}
