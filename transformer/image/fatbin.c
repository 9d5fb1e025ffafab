#include "image/fatbin.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Compilers' PTX compresses by less than this factor. */
#define RATIO_MAX   4096u
#define INFLATE_MIN ((size_t)1 << 20)

static int bad(struct diag *diag, const char *what)
{
	return diag_fail(diag, -EINVAL, (struct position){0}, "fatbinary: %s", what);
}

bool is_fatbin(const void *image, size_t len)
{
	uint32_t magic = FATBIN_MAGIC;

	return len >= sizeof(magic) && !memcmp(image, &magic, sizeof(magic));
}

static int next_container(struct fatbin_walk *walk, struct fatbin_item *item, struct diag *diag)
{
	struct fatbin_container c;

	while (walk->left && !*walk->at) { /* padding */
		walk->at++;
		walk->left--;
	}
	if (!walk->left)
		return FATBIN_END;
	if (walk->left < sizeof(c))
		return bad(diag, "it ends inside a header");
	memcpy(&c, walk->at, sizeof(c));
	if (c.magic != FATBIN_MAGIC)
		return bad(diag, "no container where one should begin");
	if (c.header_size < sizeof(c) || c.header_size > walk->left ||
	    c.size > walk->left - c.header_size)
		return bad(diag, "a container is larger than the file");
	*item = (struct fatbin_item){.header = walk->at, .header_size = c.header_size};
	walk->at += c.header_size;
	walk->left -= c.header_size;
	walk->container = c.size;
	return FATBIN_CONTAINER;
}

int fatbin_next(struct fatbin_walk *walk, struct fatbin_item *item, struct diag *diag)
{
	struct fatbin_entry e;
	size_t size;

	if (!walk->container)
		return next_container(walk, item, diag);
	if (walk->container < sizeof(e))
		return bad(diag, "a container ends inside an entry's header");
	memcpy(&e, walk->at, sizeof(e));
	if (e.header_size < sizeof(e) || e.header_size > walk->container ||
	    e.payload_size > walk->container - e.header_size)
		return bad(diag, "an entry is larger than its container");
	*item = (struct fatbin_item){.header = walk->at,
				     .header_size = e.header_size,
				     .entry = e,
				     .payload = walk->at + e.header_size};
	size = e.header_size + (size_t)e.payload_size;
	walk->at += size;
	walk->left -= size;
	walk->container -= size;
	return FATBIN_ENTRY;
}

static bool decompress(const struct fatbin_item *item, char *to, size_t len)
{
	const struct fatbin_entry *e = &item->entry;

	if (e->flags & FATBIN_ZSTD)
		return ZSTD_decompress(to, len, item->payload, e->compressed_size) == len;
	return LZ4_decompress_safe(item->payload, to, (int)e->compressed_size, (int)len) ==
	       (int)len;
}

int fatbin_inflate(const struct fatbin_item *item, char **text, size_t *len, struct diag *diag)
{
	const struct fatbin_entry *e = &item->entry;
	bool compressed = e->flags & (FATBIN_LZ4 | FATBIN_ZSTD);
	size_t size = compressed ? e->uncompressed_size : e->payload_size;
	char *data;

	if (compressed && (e->compressed_size > e->payload_size || e->compressed_size > INT_MAX ||
			   e->uncompressed_size > INT_MAX ||
			   size > INFLATE_MIN + (size_t)e->compressed_size * RATIO_MAX))
		return bad(diag, "an entry with impossible sizes");
	data = malloc(size + 1);
	if (!data)
		return diag_no_memory(diag);
	if (!compressed) {
		memcpy(data, item->payload, size);
	} else if (!decompress(item, data, size)) {
		free(data);
		return bad(diag, "an entry cannot be decompressed");
	}
	data[size] = '\0';
	*len = e->kind == FATBIN_PTX ? strnlen(data, size) : size; /* padded with zeros */
	*text = data;
	return 0;
}
