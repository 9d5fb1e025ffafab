/* Bytes as any of the messages that the kubelet sends: refused, or read; and what was read can be
 * written and read again. The first byte says which message. */
#include <assert.h>
#include <string.h>

#include "codec.h"
#include "deviceplugin-v1beta1.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCServiceDescriptor *service = &v1beta1__device_plugin__descriptor;
	struct bytes bytes = {0};
	char path[128];

	if (!size)
		return 0;
	unsigned method = data[0] / 2 % service->n_methods;
	const ProtobufCMessageDescriptor *type =
		data[0] % 2 ? service->methods[method].output : service->methods[method].input;
	ProtobufCMessage *message = codec_decode(type, data + 1, size - 1);
	if (message) {
		assert(codec_encode(&bytes, message) == 0);
		ProtobufCMessage *again = codec_decode(type, bytes.data, bytes.size);
		/* What comes back may need more than its bytes justify, but not much more. */
		assert(again || size > CODEC_SPARE / CODEC_GROWTH);
		codec_free(again);
		codec_free(message);
		bytes_deinit(&bytes);
	}

	size_t n = size - 1 < sizeof(path) - 1 ? size - 1 : sizeof(path) - 1;
	memcpy(path, data + 1, n);
	path[n] = '\0';
	assert(codec_method(service, path) < (int)service->n_methods);
	return 0;
}
