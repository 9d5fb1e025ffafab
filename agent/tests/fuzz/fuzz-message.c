/* A session's packets, whatever they are: first byte of each is its length (in units of 5) and
 * whether descriptors come with it. Nothing but one good HELLO may lead to a welcome. */
#include "daemon/handshake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The packet in memory of its own, so that reading behind its end is seen. */
static enum weir_check check(union weir_message *message, const uint8_t *data, size_t size,
			     size_t fds)
{
	uint8_t *packet = malloc(size ? size : 1);

	if (!packet)
		abort();
	memcpy(packet, data, size);
	enum weir_check result = weir_message_check(message, packet, size, fds);
	free(packet);
	return result;
}

static void expect_good_hello(const union weir_message *message)
{
	const struct weir_hello *hello = &message->hello;

	if (hello->header.type != WEIR_HELLO || hello->header.version == 0 ||
	    hello->header.size < sizeof(*hello) ||
	    (hello->claimed_bit > WEIR_BIT_SHARED && hello->claimed_bit != WEIR_BIT_NONE) ||
	    memchr(hello->library, '\0', sizeof(hello->library)) == NULL)
		abort();
}

static void expect_good_refusal(const struct handshake_verdict *verdict)
{
	struct weir_refused refused = handshake_refused(verdict->reason, verdict->text);
	union weir_message message;

	if (!*verdict->text ||
	    weir_message_check(&message, &refused, sizeof(refused), 0) != WEIR_CHECK_OK)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool welcomed = false;

	while (size > 0) {
		size_t fds = data[0] & 1, n = (size_t)(data[0] >> 1) * 5;
		union weir_message message = {0};
		struct handshake_verdict verdict;

		data++, size--;
		n = n < size ? n : size;
		handshake_judge(&verdict, check(&message, data, n, fds), &message, welcomed);
		data += n, size -= n;
		if (verdict.action == HANDSHAKE_REFUSE) {
			expect_good_refusal(&verdict);
			return 0;
		}
		if (verdict.action == HANDSHAKE_MEMORY &&
		    (welcomed || message.header.type != WEIR_MEMORY || fds))
			abort();
		if (verdict.action == HANDSHAKE_WELCOME) {
			if (welcomed)
				abort();
			expect_good_hello(&message);
			welcomed = true;
		}
	}
	return 0;
}
