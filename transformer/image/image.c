/* Images: PTX text, or fatbinaries. Each PTX entry of a fatbinary is extracted, rewritten and put
 * back. The result is not compressed, because a driver in the same process reads it once. */
#include "weir/transform.h"

#include "image/fatbin.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sets the size of the finished container that begins at @start of @out. */
static void close_container(struct text *out, size_t start)
{
	struct fatbin_container c;

	if (out->error)
		return;
	memcpy(&c, out->data + start, sizeof(c));
	c.size = out->len - start - c.header_size;
	memcpy(out->data + start, &c, sizeof(c));
}

static void add_entry(struct text *out, const struct fatbin_item *item,
		      const struct fatbin_entry *entry, const char *payload, size_t len)
{
	static const char zeros[8];

	text_add(out, (const char *)entry, sizeof(*entry));
	text_add(out, item->header + sizeof(*entry), item->header_size - sizeof(*entry));
	text_add(out, payload, len);
	text_add(out, zeros, entry->payload_size - len);
}

static void transform_entry(struct text *out, const struct fatbin_item *item,
			    const struct weir_transform_options *options, struct diag *diag)
{
	struct fatbin_entry entry = item->entry;
	struct weir_error error = {0};
	char *ptx, *rewritten;
	size_t len;
	int r;

	if (entry.kind != FATBIN_PTX) {
		add_entry(out, item, &entry, item->payload, entry.payload_size);
		return;
	}
	if (fatbin_inflate(item, &ptx, &len, diag))
		return;
	r = weir_transform(&rewritten, &len, ptx, len, options, &error);
	free(ptx);
	if (r) {
		diag_fail(diag, r, (struct position){error.line, error.column}, "%.*s",
			  DIAG_MAX - 1, error.message);
		return;
	}
	entry.flags &= ~(uint64_t)(FATBIN_LZ4 | FATBIN_ZSTD);
	entry.compressed_size = 0;
	entry.uncompressed_size = 0;
	entry.payload_size = (len + 8) & ~(size_t)7; /* at least one zero behind it */
	add_entry(out, item, &entry, rewritten, len);
	free(rewritten);
}

static void transform_fatbin(struct text *out, const void *image, size_t len,
			     const struct weir_transform_options *options, struct diag *diag)
{
	struct fatbin_walk walk = {image, len, 0};
	struct fatbin_item item;
	size_t container = 0;
	int step;

	while (!diag->error && (step = fatbin_next(&walk, &item, diag)) > FATBIN_END) {
		if (step == FATBIN_CONTAINER) {
			container = out->len;
			text_add(out, item.header, item.header_size);
		} else {
			transform_entry(out, &item, options, diag);
		}
		if (!walk.container)
			close_container(out, container);
	}
	if (out->error)
		diag_fail(diag, out->error, (struct position){0}, "the output: %s",
			  strerror(-out->error));
}

/* The length of a PTX text, which may be padded with zeros. */
static size_t text_length(const void *image, size_t len, struct diag *diag)
{
	if (len >= 4 && !memcmp(image, "\177ELF", 4))
		diag_fail(diag, -EINVAL, (struct position){0}, "machine code without PTX");
	return strnlen(image, len);
}

int weir_transform_image(void **out, size_t *out_len, const void *image, size_t len,
			 const struct weir_transform_options *options, struct weir_error *error)
{
	struct diag diag = {0};
	struct text text;

	if (!is_fatbin(image, len)) {
		len = text_length(image, len, &diag);
		return diag.error
			       ? pipeline_report(&diag, error)
			       : weir_transform((char **)out, out_len, image, len, options, error);
	}
	text_init(&text, options->output_max ? options->output_max : SIZE_MAX / 2);
	transform_fatbin(&text, image, len, options, &diag);
	if (!diag.error) {
		*out_len = text.len;
		*out = text_take(&text);
	}
	text_deinit(&text);
	return pipeline_report(&diag, error);
}

static bool suits(const struct fatbin_entry *e, unsigned sm)
{
	if (e->kind != FATBIN_PTX || e->sm > sm)
		return false;
	if (e->flags & FATBIN_EXACT)
		return e->sm == sm;
	return !(e->flags & FATBIN_FAMILY) || e->sm / 10 == sm / 10;
}

/* Prefers the newest architecture, then the more specific entry. */
static bool is_better(const struct fatbin_entry *e, const struct fatbin_entry *than)
{
	uint64_t exact = FATBIN_EXACT | FATBIN_FAMILY;

	if (e->sm != than->sm)
		return e->sm > than->sm;
	return (e->flags & exact) && !(than->flags & exact);
}

static void find_ptx(const void *image, size_t len, unsigned sm, struct fatbin_item *best,
		     struct diag *diag)
{
	struct fatbin_walk walk = {image, len, 0};
	struct fatbin_item item;
	int step;

	while ((step = fatbin_next(&walk, &item, diag)) > FATBIN_END)
		if (step == FATBIN_ENTRY && suits(&item.entry, sm) &&
		    (!best->payload || is_better(&item.entry, &best->entry)))
			*best = item;
	if (!best->payload)
		diag_fail(diag, -ENOENT, (struct position){0}, "no PTX for sm_%u", sm);
}

int weir_image_ptx(char **out, size_t *out_len, const void *image, size_t len, unsigned sm,
		   struct weir_error *error)
{
	struct fatbin_item best = {.payload = NULL};
	struct diag diag = {0};

	if (is_fatbin(image, len)) {
		find_ptx(image, len, sm, &best, &diag);
		if (!diag.error)
			fatbin_inflate(&best, out, out_len, &diag);
	} else {
		*out_len = text_length(image, len, &diag);
		*out = diag.error ? NULL : strndup(image, *out_len);
		if (!*out)
			diag_no_memory(&diag); /* unless there is an error */
	}
	return pipeline_report(&diag, error);
}
