/* The containers that compilers put PTX and machine code in. */
#pragma once

#include "diag.h"

#include <stddef.h>
#include <stdint.h>

#define FATBIN_MAGIC 0xba55ed50u

/* One behind the other, each padded to 8 bytes. */
struct fatbin_container {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* of the entries behind this header */
};

enum fatbin_kind {
	FATBIN_PTX = 1,
	FATBIN_ELF = 2,
};

enum fatbin_flags {
	FATBIN_LZ4 = 0x2000,
	FATBIN_ZSTD = 0x8000,
	FATBIN_EXACT = 0x100000,  /* sm_90a: this architecture only */
	FATBIN_FAMILY = 0x200000, /* sm_100f: this and later ones of the same tens */
};

/* The part of an entry's header that all have; header_size may be more. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t payload_size;
	uint32_t compressed_size, options;
	uint16_t minor, major;
	uint32_t sm, name, name_length;
	uint64_t flags, key;
	uint64_t uncompressed_size;
};

/* What is left of an image to walk through. */
struct fatbin_walk {
	const char *at;
	size_t left;      /* of the image */
	size_t container; /* of the container at hand */
};

enum fatbin_step {
	FATBIN_END,
	FATBIN_CONTAINER, /* a container begins: its header is at @header */
	FATBIN_ENTRY,     /* an entry: its header, header_size bytes at @header, and its payload */
};

struct fatbin_item {
	const char *header;
	size_t header_size;
	struct fatbin_entry entry;
	const char *payload; /* entry.payload_size bytes, all inside the image */
};

void fatbin_begin(struct fatbin_walk *walk, const void *image, size_t len);
/* enum fatbin_step, or -EINVAL with @diag filled. */
int fatbin_next(struct fatbin_walk *walk, struct fatbin_item *item, struct diag *diag);

/* The text of a PTX entry, for free(). 0, or a negative errno with @diag filled. */
int fatbin_inflate(const struct fatbin_item *item, char **text, size_t *len, struct diag *diag);
