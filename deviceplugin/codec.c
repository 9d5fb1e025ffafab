#include "codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void bytes_deinit(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){0};
}

/* Allocates up to a budget. Freed memory does not return to the budget. */
static void *grant(void *data, size_t size)
{
	size_t *budget = data;

	if (size > *budget)
		return NULL;
	*budget -= size;
	return malloc(size);
}

static void release(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

ProtobufCMessage *codec_decode(const ProtobufCMessageDescriptor *type, const void *data,
			       size_t size)
{
	size_t budget = CODEC_SPARE + CODEC_GROWTH * size;
	ProtobufCAllocator allocator = {.alloc = grant, .free = release, .allocator_data = &budget};

	return protobuf_c_message_unpack(type, &allocator, size, data);
}

void codec_free(ProtobufCMessage *message)
{
	/* Without an allocator, protobuf-c frees with free(), like release(). */
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

void *codec_new(const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *message = malloc(type->sizeof_message);

	if (message)
		protobuf_c_message_init(type, message);
	return message;
}

int codec_encode(struct bytes *out, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *data = malloc(size ? size : 1);

	if (!data)
		return -ENOMEM;
	protobuf_c_message_pack(message, data);
	bytes_deinit(out);
	*out = (struct bytes){data, size};
	return 0;
}

int codec_method(const ProtobufCServiceDescriptor *service, const char *path)
{
	size_t n = strlen(service->name);

	if (path[0] != '/' || strncmp(path + 1, service->name, n) != 0 || path[1 + n] != '/')
		return -1;
	for (unsigned i = 0; i < service->n_methods; i++)
		if (strcmp(path + n + 2, service->methods[i].name) == 0)
			return (int)i;
	return -1;
}
