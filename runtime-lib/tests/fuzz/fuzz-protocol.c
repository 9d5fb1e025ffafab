/* Any packet, with any number of descriptors said to come with it: read as agent and client read
 * it. */
#include "weir/protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union weir_message out;

	if (size < 1)
		return 0;
	/* An exact copy, so that a read past the packet is seen. */
	uint8_t *packet = malloc(size);
	memcpy(packet, data + 1, size - 1);
	enum weir_check check = weir_message_check(&out, packet, size - 1, data[0] % 10);
	free(packet);
	if (!weir_check_text(check))
		abort();
	if (check == WEIR_CHECK_OK && out.header.type == WEIR_HELLO &&
	    strlen(out.hello.library) > 31)
		abort();
	if (check == WEIR_CHECK_OK && out.header.type == WEIR_REFUSED &&
	    strlen(out.refused.text) > 127)
		abort();
	return 0;
}
