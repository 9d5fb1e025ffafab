/* In an object that passes the check, every table and name can be read to its end. */
#include "weir/object.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static volatile size_t sink; /* keeps the compiler from removing the reads */

static void read_names(const char *object, const struct weir_object *head)
{
	const struct weir_object_form *form = (const void *)(object + head->forms);
	const struct weir_object_param *param = (const void *)(object + head->params);
	const struct weir_object_symbol *symbol = (const void *)(object + head->symbols);

	sink += strlen(object + head->kernel);
	for (uint32_t k = 0; k < head->n_forms; k++)
		sink += strlen(object + (form[k].entry ? form[k].entry : form[k].reason));
	for (uint32_t k = 0; k < head->n_params; k++)
		sink += param[k].offset + param[k].size;
	for (uint32_t k = 0; k < head->n_symbols; k++)
		sink += strlen(object + symbol[k].name) +
			(symbol[k].copy ? strlen(object + symbol[k].copy) : 0);
	if (head->flags & WEIR_OBJECT_IS_PTX && head->image_size)
		sink += strlen(object + head->image);
	for (uint32_t k = 0; k < head->image_size; k++)
		sink += (unsigned char)object[head->image + k];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	void *copy = calloc(1, len ? len : 1); /* aligned, with nothing behind it */

	if (!copy)
		return 0;
	memcpy(copy, data, len);
	if (!weir_object_check(copy, len))
		read_names(copy, copy);
	free(copy);
	return 0;
}
