/* Random packets in a session. The first byte of each is its length (in units of 5) and whether
 * descriptors come with it. Only one good HELLO may lead to a welcome. */
#include "daemon/session-state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies the packet, so that the sanitizer sees reads beyond its end. */
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

static void expect_good_refusal(const struct session_step *step, enum weir_check check)
{
	const char *text = step->text ? step->text : weir_check_text(check);
	struct weir_refused refused = session_refused(step->reason, text);
	union weir_message message;

	if (!*text || weir_message_check(&message, &refused, sizeof(refused), 0) != WEIR_CHECK_OK)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum session_state state = SESSION_OPEN;

	while (size > 0) {
		size_t fds = data[0] & 1, n = (size_t)(data[0] >> 1) * 5;
		union weir_message message = {0};

		data++, size--;
		n = n < size ? n : size;
		enum weir_check result = check(&message, data, n, fds);
		const struct session_step *step =
			session_next(state, session_event_of(result, message.header.type));
		data += n, size -= n;
		if (step->action == SESSION_DO_REFUSE) {
			expect_good_refusal(step, result);
			return 0;
		}
		if (step->action == SESSION_DO_TELL_ACCOUNT &&
		    (state != SESSION_OPEN || message.header.type != WEIR_MEMORY || fds))
			abort();
		if (step->action == SESSION_DO_WELCOME) {
			if (state != SESSION_OPEN)
				abort();
			expect_good_hello(&message);
		}
		state = step->next;
	}
	return 0;
}
