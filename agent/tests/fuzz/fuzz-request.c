/* Random files of COMPILE: refused, or name and image lie inside the file. weir-compile's PTX
 * output for accepted files is an object. */
#include "compile/request.h"

#include <stdlib.h>
#include <string.h>

#include "weir/object.h"
#include "weir/transform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void build(const struct request *request, const char *name, const void *image)
{
	struct weir_error error = {0};
	void *object = NULL;
	size_t size = 0;

	int r = weir_object_build(&object, &size,
				  &(struct weir_object_request){.image = image,
								.len = request->image_size,
								.kernel = name,
								.sm = request->sm,
								.forms = request->forms},
				  &error);
	if (r == 0 ? weir_object_check(object, size) != 0 : !*error.message)
		abort();
	free(object);
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = malloc(size);

	if (!copy)
		abort();
	return memcpy(copy, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_compile_file head = {0};
	struct request request;

	memcpy(&head, data, size < sizeof(head) ? size : sizeof(head));
	if (request_check(&request, &head, size))
		return 0;
	/* Copies, so that the sanitizer sees reads beyond an end. */
	char *name = copy_of(data + request.name, request.name_size);
	void *image = copy_of(data + request.image, request.image_size);
	if (strnlen(name, request.name_size) == request.name_size - 1)
		build(&request, name, image);
	free(name);
	free(image);
	return 0;
}
