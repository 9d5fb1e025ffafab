/* Reads an image of any kind from a file. PTX that is found lies in the image or in its own memory.
 */
#include "simcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(freep) char *image = NULL, *owned = NULL;
	const char *text = NULL;
	size_t length = 0;

	image = calloc(1, size + 16);
	if (!image)
		return 0;
	if (size)
		memcpy(image, data, size);
	if (image_find_ptx(image, size + 16, &text, &length, &owned))
		return 0; /* NOLINT(clang-analyzer-unix.Malloc): cleanup() frees it */
	if (!owned && (text < image || length > size + 16 - (size_t)(text - image)))
		abort();
	if (memchr(text, '\0', length))
		abort();
	return 0;
}
