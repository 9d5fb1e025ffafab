#include "shim/loader-cache.h"

#include "weir/arch.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A header, entries, and a table of strings to which offsets from the header point. See `ldconfig`
 * in glibc for the layout. */
struct cache_header {
	char magic[20];
	uint32_t entries;
	uint32_t strings;
	uint32_t unused[5];
};
struct cache_entry {
	int32_t flags;
	uint32_t key, value;
	uint32_t os_version;
	uint64_t hwcap;
};
#define MAGIC "glibc-ld.so.cache1.1"

/* The text at @offset; NULL: it is not inside. */
static const char *text_at(const char *bytes, size_t size, uint32_t offset)
{
	return offset < size && memchr(bytes + offset, '\0', size - offset) ? bytes + offset : NULL;
}

/* 0: this is no such cache. */
static size_t count_entries(const char *bytes, size_t size)
{
	const struct cache_header *header = (const void *)bytes;

	if (size < sizeof(*header) || memcmp(header->magic, MAGIC, sizeof(header->magic)) != 0)
		return 0;
	bool inside = header->entries <= (size - sizeof(*header)) / sizeof(struct cache_entry);
	return inside ? header->entries : 0;
}

const char *loader_cache_next(const char *bytes, size_t size, const char *name, size_t *at)
{
	const struct cache_entry *entries = (const void *)(bytes + sizeof(struct cache_header));
	size_t n = count_entries(bytes, size);

	while (*at < n) {
		const struct cache_entry *entry = &entries[(*at)++];
		const char *key = text_at(bytes, size, entry->key);
		const char *path = text_at(bytes, size, entry->value);
		if (entry->flags == ARCH_CACHE_FLAGS && key && path && strcmp(key, name) == 0)
			return path;
	}
	return NULL;
}
