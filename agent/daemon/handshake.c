#include "daemon/handshake.h"

#include <stdio.h>

static void refuse(struct handshake_verdict *out, enum weir_refusal reason, const char *text)
{
	out->action = HANDSHAKE_REFUSE;
	out->reason = reason;
	snprintf(out->text, sizeof(out->text), "%s", text);
}

void handshake_judge(struct handshake_verdict *out, enum weir_check check,
		     const union weir_message *message, bool welcomed)
{
	*out = (struct handshake_verdict){.action = HANDSHAKE_IGNORE};
	switch (check) {
	case WEIR_CHECK_OK:
		break;
	case WEIR_CHECK_TYPE:
		/* A later library's; it knows that an old agent may not. */
		return;
	case WEIR_CHECK_VERSION:
		refuse(out, WEIR_REFUSED_VERSION, weir_check_text(check));
		return;
	default:
		refuse(out, WEIR_REFUSED_MESSAGE, weir_check_text(check));
		return;
	}

	if (message->header.type == WEIR_COMPILE && welcomed)
		out->action = HANDSHAKE_COMPILE;
	else if (message->header.type == WEIR_COMPILE)
		refuse(out, WEIR_REFUSED_MESSAGE, "COMPILE before HELLO");
	else if (message->header.type == WEIR_WORK && welcomed)
		out->action = HANDSHAKE_WORK;
	else if (message->header.type == WEIR_WORK)
		refuse(out, WEIR_REFUSED_MESSAGE, "WORK before HELLO");
	else if (message->header.type == WEIR_MEMORY && welcomed)
		refuse(out, WEIR_REFUSED_MESSAGE, "MEMORY behind HELLO");
	else if (message->header.type == WEIR_MEMORY)
		out->action = HANDSHAKE_MEMORY;
	else if (message->header.type != WEIR_HELLO)
		refuse(out, WEIR_REFUSED_MESSAGE, "a message that only the agent sends");
	else if (welcomed)
		refuse(out, WEIR_REFUSED_MESSAGE, "a second HELLO");
	else
		out->action = HANDSHAKE_WELCOME;
}

const char *handshake_refusal_name(enum weir_refusal reason)
{
	static const char *const names[HANDSHAKE_REFUSALS] = {
		[WEIR_REFUSED_VERSION] = "version",   [WEIR_REFUSED_GPU] = "gpu",
		[WEIR_REFUSED_LIMIT] = "limit",       [WEIR_REFUSED_MESSAGE] = "message",
		[WEIR_REFUSED_INTERNAL] = "internal",
	};

	return (unsigned)reason < HANDSHAKE_REFUSALS && names[reason] ? names[reason] : "?";
}

struct weir_refused handshake_refused(enum weir_refusal reason, const char *text)
{
	struct weir_refused message = {.reason = reason};

	weir_header_init(&message.header, WEIR_REFUSED, sizeof(message));
	snprintf(message.text, sizeof(message.text), "%s", text);
	return message;
}
