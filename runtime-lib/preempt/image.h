/* The PTX in a program's code: copied when the code is loaded, since the memory that it came from
 * may go (static data of a library that is closed), and still compressed, since nobody may ever ask
 * for it. Machine code is not kept. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#define IMAGES_MAX (256u << 20) /* bytes of all images together */
#define IMAGE_MAX  (63u << 20)  /* of one: with a name it must fit into a request */

struct image {
	_Atomic int references;
	size_t size; /* of `bytes`: PTX, or one fatbinary container: its PTX entries, and of those
			with machine code the headers */
	char bytes[];
};

/* What @data is to the driver: the wrapper of a compiler around a container, a container, PTX that
 * ends with NUL, machine code. @size 0: not known; then the sizes in it are believed, as the
 * driver, which has just taken it, believed them. NULL: there is no PTX in it, or no room for more.
 */
struct image *image_keep(const void *data, size_t size);

/* The same for a file. */
struct image *image_keep_file(const char *path);

/* What a device of compute capability @sm (90: 9.0) may be given in place of what it runs: source
 * differs by architecture, so if it runs machine code, that must have been made for the very
 * architecture of the PTX. An image of PTX alone, for image_unref(); NULL: there is none. */
struct image *image_for(struct image *image, unsigned sm);

/* NULL is fine. */
struct image *image_ref(struct image *image);
void image_unref(struct image *image);

/* Bytes that all images take. */
size_t image_total(void);

/* The bytes that a machine code (ELF) image says it has; 0: it is none. @size as above. */
size_t image_elf_size(const void *data, size_t size);
