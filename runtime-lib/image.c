#include "image.h"

#include "weir/base.h"
#include "weir/fatbin.h"
#include "weir/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What compilers put into a program's data: the container lies elsewhere. */
#define WRAPPER_MAGIC 0x466243b1u
struct wrapper {
	uint32_t magic, version;
	const void *container;
	const void *more; /* what a linked container was made of */
};

static _Atomic size_t total;

size_t image_total(void)
{
	return atomic_load(&total);
}

static struct image *image_new(size_t size)
{
	struct image *image = NULL;

	if (size > IMAGE_MAX)
		return NULL;
	if (atomic_fetch_add(&total, size) + size <= IMAGES_MAX)
		image = malloc(sizeof(*image) + size);
	else
		log_limited(
			LOG_WARNING, 86400,
			"more than %u MiB of PTX: kernels of what is loaded now run as they are",
			IMAGES_MAX >> 20);
	if (!image) {
		atomic_fetch_sub(&total, size);
		return NULL;
	}
	image->references = 1;
	image->size = size;
	return image;
}

struct image *image_ref(struct image *image)
{
	if (image)
		atomic_fetch_add(&image->references, 1);
	return image;
}

void image_unref(struct image *image)
{
	if (!image || atomic_fetch_sub(&image->references, 1) != 1)
		return;
	atomic_fetch_sub(&total, image->size);
	free(image);
}

/* Goes through the entries of a container: how many bytes those with PTX have, which are copied to
 * @out if it is there. What is larger than what is around it ends the walk. */
static size_t collect(const char *entries, uint64_t left, char *out)
{
	struct fatbin_entry entry;
	size_t sum = 0;

	while (left >= sizeof(entry)) {
		memcpy(&entry, entries, sizeof(entry));
		if (entry.header_size < sizeof(entry) || entry.header_size > left ||
		    entry.payload_size > left - entry.header_size)
			break;
		uint64_t size = entry.header_size + entry.payload_size;
		if (entry.kind == FATBIN_PTX) {
			if (out)
				memcpy(out + sum, entries, size);
			sum += size;
		}
		entries += size;
		left -= size;
	}
	return sum;
}

/* @size 0: not known. */
static struct image *keep_container(const char *data, size_t size)
{
	struct fatbin_container container;

	memcpy(&container, data, sizeof(container));
	if (container.header_size < sizeof(container) ||
	    (size &&
	     (container.header_size > size || container.size > size - container.header_size)))
		return NULL;
	size_t ptx = collect(data + container.header_size, container.size, NULL);
	struct image *image = ptx ? image_new(sizeof(container) + ptx) : NULL;
	if (!image)
		return NULL;
	collect(data + container.header_size, container.size, image->bytes + sizeof(container));
	container.header_size = sizeof(container);
	container.size = ptx;
	memcpy(image->bytes, &container, sizeof(container));
	return image;
}

static bool is_text(char first)
{
	return first == '/' || first == '.' || first == '\t' || first == '\n' || first == '\r' ||
	       first == ' ';
}

/* @size 0: not known. */
static struct image *keep_text(const char *data, size_t size)
{
	size_t length = strnlen(data, size && size < IMAGE_MAX ? size : IMAGE_MAX);
	struct image *image = length && length < IMAGE_MAX ? image_new(length) : NULL;

	if (image)
		memcpy(image->bytes, data, length);
	return image;
}

/* The first four bytes, or 0 of what is shorter. */
static uint32_t magic_of(const char *data, size_t size)
{
	uint32_t magic = 0;

	if (size ? size >= sizeof(magic) : strnlen(data, sizeof(magic)) == sizeof(magic))
		memcpy(&magic, data, sizeof(magic));
	return magic;
}

struct image *image_keep(const void *data, size_t size)
{
	struct wrapper wrapper;

	if (!data)
		return NULL;
	uint32_t magic = magic_of(data, size);
	if (magic == WRAPPER_MAGIC && !size) { /* holds addresses, so never from a file */
		memcpy(&wrapper, data, sizeof(wrapper));
		data = wrapper.container;
		magic = data ? magic_of(data, 0) : 0;
	}
	if (magic == FATBIN_MAGIC)
		return size && size < sizeof(struct fatbin_container) ? NULL
								      : keep_container(data, size);
	return magic && is_text(*(const char *)data) ? keep_text(data, size) : NULL;
}

/* A file with machine code is not read. */
static char *read_file(int fd, size_t *size)
{
	char head[4];
	struct stat info;

	if (pread(fd, head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head, ELFMAG, sizeof(head)) == 0 || fstat(fd, &info) < 0 ||
	    !S_ISREG(info.st_mode) || info.st_size > (off_t)IMAGES_MAX)
		return NULL;
	*size = (size_t)info.st_size;
	cleanup(freep) char *data = malloc(*size);
	if (!data || pread(fd, data, *size, 0) != info.st_size)
		return NULL;
	return take(data);
}

struct image *image_keep_file(const char *path)
{
	cleanup(closep) int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	size_t size = 0;
	cleanup(freep) char *data = fd >= 0 ? read_file(fd, &size) : NULL;

	return data ? image_keep(data, size) : NULL;
}

size_t image_elf_size(const void *data, size_t size)
{
	Elf64_Ehdr header;

	uint32_t magic = data ? magic_of(data, size) : 0;

	if (memcmp(&magic, ELFMAG, sizeof(magic)) != 0 || (size && size < sizeof(header)))
		return 0;
	memcpy(&header, data, sizeof(header));
	uint64_t sections = (uint64_t)header.e_shnum * header.e_shentsize;
	uint64_t segments = (uint64_t)header.e_phnum * header.e_phentsize;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > IMAGES_MAX ||
	    header.e_phoff > IMAGES_MAX)
		return 0;
	uint64_t end = header.e_shoff + sections > header.e_phoff + segments
			       ? header.e_shoff + sections
			       : header.e_phoff + segments;
	return size && end > size ? 0 : end;
}
