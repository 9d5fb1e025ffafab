#include "load.h"

#include <stdlib.h>
#include <string.h>

int load_forms(struct ptx_module **module, const char *text,
	       const struct weir_transform_options *options)
{
	struct weir_error error;
	struct ptx_error why;
	size_t len;
	char *out;
	int r = weir_transform(&out, &len, text, strlen(text), options, &error);

	if (r)
		return r;
	r = ptx_module_load(module, out, len, &why);
	free(out);
	return r;
}
