/* What a packet from a client means, and the messages that answer it. Pure: no socket, no memory;
 * everything a client can say passes through handshake_judge(). */
#pragma once

#include <stdbool.h>

#include "weir/protocol.h"

enum handshake_action {
	HANDSHAKE_IGNORE,
	HANDSHAKE_WELCOME, /* a good HELLO: register the client, if there is room and such a GPU */
	HANDSHAKE_COMPILE, /* a good COMPILE, of a client */
	HANDSHAKE_MEMORY,  /* a good MEMORY, on a connection that is nobody's yet */
	HANDSHAKE_WORK,    /* a good WORK, of a client */
	HANDSHAKE_REFUSE,
};

struct handshake_verdict {
	enum handshake_action action;
	enum weir_refusal reason; /* when refused */
	char text[128];
};

/* @check: what the protocol's checks said of the packet; only of WEIR_CHECK_OK is @message read.
 * @welcomed: the client has had its WELCOME. */
void handshake_judge(struct handshake_verdict *out, enum weir_check check,
		     const union weir_message *message, bool welcomed);

/* Short names of refusals, for metrics. */
const char *handshake_refusal_name(enum weir_refusal reason);
#define HANDSHAKE_REFUSALS (WEIR_REFUSED_INTERNAL + 1)

struct weir_refused handshake_refused(enum weir_refusal reason, const char *text);
