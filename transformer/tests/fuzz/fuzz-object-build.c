/* Builds an object from a hostile image. The object must pass its check, and its PTX must parse. */
#include "weir/object.h"
#include "weir/transform.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The name behind the first .entry, or any name. */
static void find_name(char *name, size_t room, const uint8_t *data, size_t len)
{
	const char *at = memmem(data, len, ".entry ", 7), *end = (const char *)data + len;
	size_t n = 0;

	for (at = at ? at + 7 : end; at < end && n < room - 1 && !strchr(" (\t\n", *at); at++)
		name[n++] = *at;
	name[n] = '\0';
}

static void check_text(const void *object)
{
	const struct weir_object *head = object;
	const char *text = (const char *)object + head->image;
	struct weir_transform_options none = {0};
	struct weir_error error;
	size_t len;
	char *out;

	if (!head->image_size)
		return;
	assert(!weir_transform(&out, &len, text, head->image_size - 1, &none, &error));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[64];
	struct weir_object_request request = {
		.image = data, .len = len, .kernel = name, .sm = 90, .forms = ~0u};
	struct weir_error error;
	size_t size;
	void *object;

	find_name(name, sizeof(name), data, len);
	if (weir_object_build(&object, &size, &request, &error))
		return 0;
	assert(!weir_object_check(object, size));
	check_text(object);
	free(object);
	return 0;
}
