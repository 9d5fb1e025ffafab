#include "preempt/image.h"

#include "weir/base.h"
#include "weir/file.h"
#include "weir/fatbin.h"
#include "weir/log.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

/* Compilers put this into a program's data; the container lies elsewhere. */
#define WRAPPER_MAGIC 0x466243b1u
struct wrapper {
	uint32_t magic, version;
	const void *container;
	const void *more; /* the input of a linked container */
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
			"more than %u MiB of PTX: kernels of code that is loaded now run natively",
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

/* For one architecture, or one family, only. */
#define SPECIAL (FATBIN_EXACT | FATBIN_FAMILY)

/* Which entries of a container to keep. */
struct filter {
	bool machine_code; /* headers of its entries */
	uint32_t sm;       /* 0: PTX of any architecture */
	uint64_t special;
};

/* The size of the next entry of a container that has @left bytes left. 0: no more, or an entry
 * larger than its container. */
static uint64_t next_entry(const char *at, uint64_t left, struct fatbin_entry *entry)
{
	if (left < sizeof(*entry))
		return 0;
	memcpy(entry, at, sizeof(*entry));
	if (entry->header_size < sizeof(*entry) || entry->header_size > left ||
	    entry->payload_size > left - entry->header_size)
		return 0;
	return entry->header_size + entry->payload_size;
}

static size_t keep_entry(const struct filter *filter, const struct fatbin_entry *entry,
			 const char *at, uint64_t size, char *out)
{
	struct fatbin_entry header = *entry;

	if (entry->kind == FATBIN_PTX &&
	    (!filter->sm ||
	     (entry->sm == filter->sm && (entry->flags & SPECIAL) == filter->special))) {
		if (out)
			memcpy(out, at, size);
		return size;
	}
	if (entry->kind != FATBIN_ELF || !filter->machine_code)
		return 0;
	header.header_size = sizeof(header);
	header.payload_size = 0;
	header.name = header.name_length = 0;
	if (out)
		memcpy(out, &header, sizeof(header));
	return sizeof(header);
}

/* How many bytes of the entries to keep; @out, if not NULL: copies them there. */
static size_t collect(const struct filter *filter, const char *at, uint64_t left, char *out,
		      bool *any_ptx)
{
	struct fatbin_entry entry;
	uint64_t size;
	size_t sum = 0;

	*any_ptx = false;
	for (; (size = next_entry(at, left, &entry)); at += size, left -= size) {
		size_t kept = keep_entry(filter, &entry, at, size, out ? out + sum : NULL);
		*any_ptx |= kept && entry.kind == FATBIN_PTX;
		sum += kept;
	}
	return sum;
}

/* A new container of the entries to keep, among @size bytes. */
static struct image *new_container(const struct filter *filter, const char *entries, uint64_t size)
{
	struct fatbin_container container = {FATBIN_MAGIC, 1, sizeof(container), 0};
	bool any_ptx;
	size_t kept = collect(filter, entries, size, NULL, &any_ptx);
	struct image *image = any_ptx ? image_new(sizeof(container) + kept) : NULL;

	if (!image)
		return NULL;
	container.size = kept;
	memcpy(image->bytes, &container, sizeof(container));
	collect(filter, entries, size, image->bytes + sizeof(container), &any_ptx);
	return image;
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
	return new_container(&(struct filter){.machine_code = true}, data + container.header_size,
			     container.size);
}

/* The first four bytes; 0 if there are fewer. */
static uint32_t magic_of(const char *data, size_t size)
{
	uint32_t magic = 0;

	if (size ? size >= sizeof(magic) : strnlen(data, sizeof(magic)) == sizeof(magic))
		memcpy(&magic, data, sizeof(magic));
	return magic;
}

static bool runs_on(const struct fatbin_entry *entry, unsigned sm)
{
	if (entry->kind != FATBIN_ELF || entry->sm > sm || entry->sm / 10 != sm / 10)
		return false;
	return !(entry->flags & FATBIN_EXACT) || entry->sm == sm;
}

/* The newest machine code that the device can run. False: there is some for the same architecture
 * with and without its special features; it is not known which one the driver chooses. */
static bool find_machine_code(const char *at, uint64_t left, unsigned sm, struct filter *filter)
{
	struct fatbin_entry entry;
	bool clear = true;
	uint64_t size;

	for (; (size = next_entry(at, left, &entry)); at += size, left -= size) {
		if (!runs_on(&entry, sm) || entry.sm < filter->sm)
			continue;
		clear = entry.sm > filter->sm ||
			(clear && (entry.flags & SPECIAL) == filter->special);
		filter->sm = entry.sm;
		filter->special = entry.flags & SPECIAL;
	}
	return clear;
}

struct image *image_for(struct image *image, unsigned sm)
{
	const char *entries = image->bytes + sizeof(struct fatbin_container);
	struct filter filter = {0};

	if (image->size < sizeof(struct fatbin_container) ||
	    magic_of(image->bytes, image->size) != FATBIN_MAGIC)
		return image_ref(image);
	uint64_t size = image->size - sizeof(struct fatbin_container);
	return find_machine_code(entries, size, sm, &filter) ? new_container(&filter, entries, size)
							     : NULL;
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

struct image *image_join(const struct image *first, const struct image *second)
{
	struct image *image = NULL;

	if (is_text(*first->bytes) && is_text(*second->bytes))
		image = image_new(first->size + 1 + second->size);
	if (!image)
		return NULL;
	memcpy(image->bytes, first->bytes, first->size);
	image->bytes[first->size] = '\n';
	memcpy(image->bytes + first->size + 1, second->bytes, second->size);
	return image;
}

/* What is in a compiler's wrapper, which holds addresses, so it is never from a file. */
static const void *unwrap(const void *data, size_t size)
{
	struct wrapper wrapper;

	if (!data || size || magic_of(data, 0) != WRAPPER_MAGIC)
		return data;
	memcpy(&wrapper, data, sizeof(wrapper));
	return wrapper.container;
}

struct image *image_keep(const void *data, size_t size)
{
	data = unwrap(data, size);
	uint32_t magic = data ? magic_of(data, size) : 0;
	if (magic == FATBIN_MAGIC)
		return size && size < sizeof(struct fatbin_container) ? NULL
								      : keep_container(data, size);
	return magic && is_text(*(const char *)data) ? keep_text(data, size) : NULL;
}

const void *image_extent(const void *data, size_t *size)
{
	struct fatbin_container container;

	data = unwrap(data, *size);
	if (!data || *size)
		return data;
	if (magic_of(data, 0) == FATBIN_MAGIC) {
		memcpy(&container, data, sizeof(container));
		*size = container.header_size + container.size;
	} else if (strncmp(data, ELFMAG, SELFMAG) == 0) {
		*size = image_elf_size(data, 0);
		*size = *size > sizeof(Elf64_Ehdr) ? *size : sizeof(Elf64_Ehdr);
	} else {
		*size = strlen(data);
	}
	return data;
}

void *image_read(const char *path, size_t *size)
{
	cleanup(closep) int fd = file_open(AT_FDCWD, path, O_RDONLY);

	return file_load(fd, SIZE_MAX, size);
}

struct image *image_keep_file(const char *path)
{
	size_t size;
	cleanup(freep) void *data = path ? image_read(path, &size) : NULL;

	return data ? image_keep(data, size) : NULL;
}

size_t image_elf_size(const void *data, size_t size)
{
	Elf64_Ehdr header;

	if (!data)
		return 0;
	uint32_t magic = magic_of(data, size);
	if (memcmp(&magic, ELFMAG, sizeof(magic)) != 0 || (size && size < sizeof(header)))
		return 0;
	memcpy(&header, data, sizeof(header));
	uint64_t sections = (uint64_t)header.e_shnum * header.e_shentsize;
	uint64_t segments = (uint64_t)header.e_phnum * header.e_phentsize;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > IMAGES_MAX ||
	    header.e_phoff > IMAGES_MAX)
		return 0;
	uint64_t end = larger(header.e_shoff + sections, header.e_phoff + segments);
	return size && end > size ? 0 : end;
}
