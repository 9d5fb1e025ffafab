/* Protobuf messages to and from bytes, and method paths, by protobuf-c's descriptors: nothing here
 * knows any message. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* What decoding may allocate for each byte that it reads, and on top of that. A message of many
 * empty sub-messages grows the most. */
#define CODEC_GROWTH 32u
#define CODEC_SPARE  (64u << 10)

/* Owned bytes. */
struct bytes {
	uint8_t *data;
	size_t size;
};
void bytes_deinit(struct bytes *bytes);

/* NULL: not a message of @type, or one that needs more memory than its size justifies. Free it with
 * codec_free(). */
ProtobufCMessage *codec_decode(const ProtobufCMessageDescriptor *type, const void *data,
			       size_t size);
void codec_free(ProtobufCMessage *message);

/* 0, or -ENOMEM. Replaces what @out has. */
int codec_encode(struct bytes *out, const ProtobufCMessage *message);

/* Index of the method that @path ("/package.Service/Method") names, or -1. */
int codec_method(const ProtobufCServiceDescriptor *service, const char *path);
/* The path of method @index. */
void codec_path(char *out, size_t size, const ProtobufCServiceDescriptor *service, unsigned index);

/* For cleanup(). */
static inline void codec_freep(void *pointer)
{
	codec_free(*(ProtobufCMessage **)pointer);
}
