/* Any bytes as a message of the kubelet: refused or decoded; a decoded message can be encoded. The
 * first byte chooses the type of the message. */
#include <assert.h>
#include <string.h>

#include "codec.h"
#include "deviceplugin-v1beta1.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some encoded messages cannot be decoded again, because protobuf-c keeps unknown fields of number
 * 0 and the memory budget depends on the size. If one can, it must be equal. */
static void check_again(const ProtobufCMessageDescriptor *type, const ProtobufCMessage *message)
{
	struct bytes first = {0}, second = {0};

	assert(codec_encode(&first, message) == 0);
	ProtobufCMessage *again = codec_decode(type, first.data, first.size);
	if (again) {
		assert(codec_encode(&second, again) == 0);
		assert(second.size == first.size);
		assert(memcmp(second.data, first.data, first.size) == 0);
		codec_free(again);
	}
	bytes_deinit(&first);
	bytes_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCServiceDescriptor *service = &v1beta1__device_plugin__descriptor;
	char path[128];

	if (!size)
		return 0;
	unsigned method = data[0] / 2 % service->n_methods;
	const ProtobufCMessageDescriptor *type =
		data[0] % 2 ? service->methods[method].output : service->methods[method].input;
	ProtobufCMessage *message = codec_decode(type, data + 1, size - 1);
	if (message) {
		check_again(type, message);
		codec_free(message);
	}

	size_t n = size - 1 < sizeof(path) - 1 ? size - 1 : sizeof(path) - 1;
	memcpy(path, data + 1, n);
	path[n] = '\0';
	assert(codec_method(service, path) < (int)service->n_methods);
	return 0;
}
