/* A hostile file: only PTX that lies inside it may be taken from it. */
#include "preempt/image.h"

#include "weir/fatbin.h"

#include <stdlib.h>
#include <string.h>

/* Nothing but PTX, one entry behind the other. */
static void check_container(const struct image *image)
{
	struct fatbin_container container;
	struct fatbin_entry entry;
	size_t at = sizeof(container);

	memcpy(&container, image->bytes, sizeof(container));
	if (container.header_size != at || container.size != image->size - at)
		abort();
	while (at < image->size) {
		memcpy(&entry, image->bytes + at, sizeof(entry));
		if (entry.kind != FATBIN_PTX)
			abort();
		at += entry.header_size + entry.payload_size;
	}
	if (at != image->size)
		abort();
}

static void check(const struct image *image)
{
	uint32_t magic = 0;

	if (image && image->size >= sizeof(struct fatbin_container))
		memcpy(&magic, image->bytes, sizeof(magic));
	if (magic == FATBIN_MAGIC)
		check_container(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	/* An exact copy, so that a read past its end is seen. */
	uint8_t *copy = malloc(size);
	memcpy(copy, data, size);
	if (image_elf_size(copy, size) > size)
		abort();
	struct image *image = image_keep(copy, size);
	free(copy);
	if (image && image->size > size)
		abort();
	struct image *fit = image ? image_for(image, 90) : NULL;
	check(fit);
	image_unref(fit);
	image_unref(image);
	if (image_total())
		abort();
	return 0;
}
