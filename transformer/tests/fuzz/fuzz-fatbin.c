/* Counts the variables of a hostile image and rewrites it. The result must be a valid image. */
#include "weir/transform.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_transform_options options = {.forms = 1u << WEIR_SLICED}, none = {0};
	struct weir_error error;
	size_t out_len, again_len;
	void *out, *again;
	char *ptx;

	if (weir_image_variables(data, len, 0) < weir_image_variables(data, len, 90))
		abort();
	if (!weir_image_ptx(&ptx, &out_len, data, len, 90, &error))
		free(ptx);
	if (weir_transform_image(&out, &out_len, data, len, &options, &error))
		return 0;
	assert(!weir_transform_image(&again, &again_len, out, out_len, &none, &error));
	free(again);
	free(out);
	return 0;
}
