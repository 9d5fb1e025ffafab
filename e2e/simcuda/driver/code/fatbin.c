/* Finds the PTX in an image: text, a fatbinary container, or the wrapper that compilers put around
 * one.
 *
 * A container is a 16-byte header and then entries, each a header and a payload. Every size comes
 * from the image, so it is checked against the bytes that are left. Of several PTX entries for this
 * GPU, the one for the newest architecture is used.
 */
#include "simcuda/driver/driver.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "weir/fatbin.h"

#define WRAPPER_MAGIC 0x466243b1u
#define OUR_SM        90u
#define TEXT_MAX      (256u << 20)

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *more;
};

static bool usable(const struct fatbin_entry *e)
{
	if (e->kind != FATBIN_PTX || e->sm > OUR_SM)
		return false;
	/* sm_90a, sm_100f: no other architecture. */
	return !(e->flags & (FATBIN_EXACT | FATBIN_FAMILY)) || e->sm == OUR_SM;
}

/* Walks the entries of a container of @size bytes behind its header. */
static const char *best_entry(const char *at, uint64_t size, struct fatbin_entry *best)
{
	const char *found = NULL;

	while (size >= sizeof(struct fatbin_entry)) {
		struct fatbin_entry e;

		memcpy(&e, at, sizeof(e));
		if (e.header_size < sizeof(e) || e.header_size > size ||
		    e.payload_size > size - e.header_size)
			break;
		if (usable(&e) && (!found || e.sm > best->sm)) {
			*best = e;
			found = at + e.header_size;
		}
		at += e.header_size + e.payload_size;
		size -= e.header_size + e.payload_size;
	}
	return found;
}

static CUresult inflate(const struct fatbin_entry *e, const char *payload, char **out)
{
	size_t from = e->compressed_size, to = e->uncompressed_size;
	bool good;

	if (from > e->payload_size || !to || to > TEXT_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	*out = malloc(to);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (e->flags & FATBIN_ZSTD)
		good = ZSTD_decompress(*out, to, payload, from) == to;
	else
		good = LZ4_decompress_safe(payload, *out, (int)from, (int)to) == (int)to;
	if (good)
		return CUDA_SUCCESS;
	free(*out);
	*out = NULL;
	return CUDA_ERROR_INVALID_IMAGE;
}

static CUresult from_container(const char *image, size_t size, const char **text, size_t *length,
			       char **owned)
{
	struct fatbin_container c;
	struct fatbin_entry e = {0};
	const char *payload;

	memcpy(&c, image, sizeof(c));
	if (c.header_size < sizeof(c) ||
	    (size && (size < c.header_size || c.size > size - c.header_size)))
		return CUDA_ERROR_INVALID_IMAGE;
	payload = best_entry(image + c.header_size, c.size, &e);
	if (!payload)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*text = payload;
	*length = e.payload_size;
	if (e.flags & (FATBIN_LZ4 | FATBIN_ZSTD)) {
		RETURN_IF(inflate(&e, payload, owned));
		*text = *owned;
		*length = e.uncompressed_size;
	}
	*length = strnlen(*text, *length); /* padded with zeros */
	return CUDA_SUCCESS;
}

CUresult image_find_ptx(const void *image, size_t size, const char **text, size_t *length,
			char **owned)
{
	uint32_t magic;
	struct wrapper wrapper;

	*owned = NULL;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!size && strnlen(image, 4) < 4)
		return CUDA_ERROR_INVALID_IMAGE;
	if (size && size < sizeof(struct fatbin_container))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC && !size) { /* holds addresses, so never from a file */
		memcpy(&wrapper, image, sizeof(wrapper));
		image = wrapper.data;
		if (!image)
			return CUDA_ERROR_INVALID_IMAGE;
		memcpy(&magic, image, sizeof(magic));
	}
	if (magic == FATBIN_MAGIC)
		return from_container(image, size, text, length, owned);
	if (!memcmp(image, "\177ELF", 4))
		return CUDA_ERROR_NO_BINARY_FOR_GPU; /* machine code cannot be run here */
	*text = image;
	*length = size ? strnlen(image, size) : strlen(image);
	return CUDA_SUCCESS;
}
