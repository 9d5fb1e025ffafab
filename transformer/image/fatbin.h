/* Walks through fatbinary containers and extracts PTX. */
#pragma once

#include "syntax/diag.h"

#include <stddef.h>

#include "weir/fatbin.h"

/* The rest of an image; at first the whole: {image, length}. */
struct fatbin_walk {
	const char *at;
	size_t left;      /* bytes of the image */
	size_t container; /* bytes of the current container */
};

enum fatbin_step {
	FATBIN_END,
	FATBIN_CONTAINER, /* the start of a container: its header is at @header */
	FATBIN_ENTRY,     /* an entry: its header (header_size bytes at @header) and its payload */
};

struct fatbin_item {
	const char *header;
	size_t header_size;
	struct fatbin_entry entry;
	const char *payload; /* entry.payload_size bytes, inside the image */
};

bool is_fatbin(const void *image, size_t len);
/* enum fatbin_step, or -EINVAL with @diag filled. */
int fatbin_next(struct fatbin_walk *walk, struct fatbin_item *item, struct diag *diag);

/* The text of a PTX entry, or the contents of another, for free(). 0, or a negative errno with
 * @diag filled. */
int fatbin_inflate(const struct fatbin_item *item, char **text, size_t *len, struct diag *diag);
