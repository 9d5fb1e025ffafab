/* The PTX in a program's code. It is copied when the code is loaded, because the memory may go
 * (static data of a library that is closed), and stays compressed, because it may never be needed.
 * Machine code is not kept. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#define IMAGES_MAX (256u << 20) /* bytes of all images together */
#define IMAGE_MAX  (63u << 20)  /* bytes of one: it must fit into a request with a name */

struct image {
	_Atomic int references;
	size_t size;
	/* PTX, or a fatbinary container with its PTX entries and the headers of the others. */
	char bytes[];
};

/* Keeps the PTX of @data: a compiler's wrapper around a container, a container, PTX that ends with
 * NUL, or machine code. @size 0: not known; then the sizes inside are trusted, as the driver did
 * when it took them. NULL: there is no PTX, or no room. */
struct image *image_keep(const void *data, size_t size);

/* Of @data and @size as above: where the image lies without a wrapper, and its size. NULL: nowhere.
 */
const void *image_extent(const void *data, size_t *size);

/* The same for a file. */
struct image *image_keep_file(const char *path);
/* The contents of a file, for free(). NULL: it cannot be read. */
void *image_read(const char *path, size_t *size);

/* The PTX that may replace what a device of compute capability @sm (90: 9.0) runs. Source differs
 * by architecture, so if the device runs machine code, that must be of the same architecture as the
 * PTX. An image of PTX alone, for image_unref(); NULL: there is none. */
struct image *image_for(struct image *image, unsigned sm);

/* Both texts in one, as the linker of the driver takes them. NULL: one is no text, or no room. */
struct image *image_join(const struct image *first, const struct image *second);

/* NULL is fine. */
struct image *image_ref(struct image *image);
void image_unref(struct image *image);

/* Bytes of all images. */
size_t image_total(void);

/* The size of a machine code (ELF) image by its headers; 0: it is none. @size as above. */
size_t image_elf_size(const void *data, size_t size);
