/* Converts Protobuf messages to and from bytes, by protobuf-c's descriptors, for any message type.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Decoding may allocate this much per byte of the message, plus a constant. Messages of many empty
 * sub-messages need the most. */
#define CODEC_GROWTH 32u
#define CODEC_SPARE  (64u << 10)

/* Bytes that the struct owns. */
struct bytes {
	uint8_t *data;
	size_t size;
};
void bytes_deinit(struct bytes *bytes);

/* Free the result with codec_free(). NULL: not a message of @type, or it needs more memory than its
 * size allows. */
ProtobufCMessage *codec_decode(const ProtobufCMessageDescriptor *type, const void *data,
			       size_t size);
void codec_free(ProtobufCMessage *message);
/* An empty message; free it with codec_free(). NULL: no memory. */
void *codec_new(const ProtobufCMessageDescriptor *type);

/* Replaces the content of @out. 0 or -ENOMEM. */
int codec_encode(struct bytes *out, const ProtobufCMessage *message);

/* The index of the method that @path ("/package.Service/Method") names, or -1. */
int codec_method(const ProtobufCServiceDescriptor *service, const char *path);

/* For cleanup(). */
static inline void codec_freep(void *pointer)
{
	codec_free(*(ProtobufCMessage **)pointer);
}
