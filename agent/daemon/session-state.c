#include "daemon/session-state.h"

#include <stdio.h>

enum session_event session_event_of(enum weir_check check, uint16_t type)
{
	if (check == WEIR_CHECK_TYPE)
		return SESSION_UNKNOWN;
	if (check != WEIR_CHECK_OK)
		return check == WEIR_CHECK_VERSION ? SESSION_BAD_VERSION : SESSION_MALFORMED;
	switch (type) {
	case WEIR_HELLO:
		return SESSION_HELLO;
	case WEIR_MEMORY:
		return SESSION_MEMORY;
	case WEIR_MEMORY_WAITS:
		return SESSION_MEMORY_WAITS;
	case WEIR_PIPES:
		return SESSION_PIPES;
	case WEIR_COMPILE:
		return SESSION_COMPILE;
	case WEIR_WORK:
		return SESSION_WORK;
	case WEIR_CHANNELS:
		return SESSION_CHANNELS;
	case WEIR_LEARNED:
		return SESSION_LEARNED;
	default:
		return SESSION_FOREIGN;
	}
}

// clang-format off
#define DO(action, next)     {SESSION_DO_##action, SESSION_##next, 0, NULL}
#define REFUSE(reason, text) {SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_##reason, text}

#define IN_EVERY_STATE(state)                                                   \
	[SESSION_FOREIGN]     = REFUSE(MESSAGE, "a message that only the agent sends"), \
	[SESSION_UNKNOWN]     = DO(NOTHING, state),                             \
	[SESSION_BAD_VERSION] = REFUSE(VERSION, NULL),                          \
	[SESSION_MALFORMED]   = REFUSE(MESSAGE, NULL),                          \
	[SESSION_END]         = DO(NOTHING, GONE)

/* Nothing is read while a session waits, but a hang-up is reported with what lies before it. */
#define TOO_SOON      REFUSE(MESSAGE, "a message before the answer to the last one")
#define WHILE_WAITING(state)                  \
	[SESSION_HELLO]        = TOO_SOON,    \
	[SESSION_HELLO_EARLY]  = TOO_SOON,    \
	[SESSION_MEMORY]       = TOO_SOON,    \
	[SESSION_MEMORY_EARLY] = TOO_SOON,    \
	[SESSION_PIPES]        = TOO_SOON,    \
	[SESSION_PIPES_EARLY]  = TOO_SOON,    \
	[SESSION_MEMORY_WAITS] = TOO_SOON,    \
	[SESSION_COMPILE]      = TOO_SOON,    \
	[SESSION_WORK]         = TOO_SOON,    \
	[SESSION_CHANNELS]     = TOO_SOON,    \
	[SESSION_LEARNED]      = TOO_SOON,    \
	IN_EVERY_STATE(state)

static const struct session_step steps[SESSION_STATES][SESSION_EVENTS] = {
	[SESSION_OPEN] = {
		[SESSION_HELLO]        = DO(WELCOME, CLIENT),
		[SESSION_HELLO_EARLY]  = DO(HURRY_PODS, AWAITS_LEVEL),
		[SESSION_MEMORY]       = DO(TELL_ACCOUNT, OPEN),
		[SESSION_MEMORY_EARLY] = DO(HURRY_PODS, AWAITS_LIMIT),
		[SESSION_PIPES]        = DO(TELL_PIPES, OPEN),
		[SESSION_PIPES_EARLY]  = DO(TELL_PIPES_LATER, AWAITS_PIPES),
		[SESSION_MEMORY_WAITS] = DO(NOTE_WAIT, MEMORY_WAIT),
		[SESSION_COMPILE]      = REFUSE(MESSAGE, "COMPILE before HELLO"),
		[SESSION_WORK]         = REFUSE(MESSAGE, "WORK before HELLO"),
		[SESSION_CHANNELS]     = REFUSE(MESSAGE, "CHANNELS before HELLO"),
		[SESSION_LEARNED]      = REFUSE(MESSAGE, "LEARNED before HELLO"),
		[SESSION_POD_KNOWN]    = DO(NOTHING, OPEN),
		[SESSION_DEADLINE]     = REFUSE(MESSAGE, "no HELLO within 5 s"),
		IN_EVERY_STATE(OPEN),
	},
	[SESSION_AWAITS_LEVEL] = {
		[SESSION_POD_KNOWN] = DO(WELCOME, CLIENT),
		[SESSION_DEADLINE]  = DO(WELCOME, CLIENT),
		WHILE_WAITING(AWAITS_LEVEL),
	},
	[SESSION_AWAITS_LIMIT] = {
		[SESSION_POD_KNOWN] = DO(TELL_ACCOUNT, OPEN),
		/* The process asks again if it cannot do without a limit. */
		[SESSION_DEADLINE]  = REFUSE(INTERNAL, "its pod is not known yet, nor its limit of memory"),
		WHILE_WAITING(AWAITS_LIMIT),
	},
	[SESSION_AWAITS_PIPES] = {
		[SESSION_POD_KNOWN] = DO(TELL_PIPES, OPEN),
		[SESSION_DEADLINE]  = DO(TELL_PIPES, OPEN),
		WHILE_WAITING(AWAITS_PIPES),
	},
	[SESSION_MEMORY_WAIT] = {
		[SESSION_POD_KNOWN] = DO(NOTHING, MEMORY_WAIT),
		[SESSION_DEADLINE]  = DO(NOTHING, MEMORY_WAIT),
		WHILE_WAITING(MEMORY_WAIT),
	},
	[SESSION_CLIENT] = {
		[SESSION_HELLO]        = REFUSE(MESSAGE, "a second HELLO"),
		[SESSION_HELLO_EARLY]  = REFUSE(MESSAGE, "a second HELLO"),
		[SESSION_MEMORY]       = REFUSE(MESSAGE, "MEMORY behind HELLO"),
		[SESSION_MEMORY_EARLY] = REFUSE(MESSAGE, "MEMORY behind HELLO"),
		[SESSION_PIPES]        = REFUSE(MESSAGE, "PIPES behind HELLO"),
		[SESSION_PIPES_EARLY]  = REFUSE(MESSAGE, "PIPES behind HELLO"),
		[SESSION_MEMORY_WAITS] = REFUSE(MESSAGE, "MEMORY_WAITS behind HELLO"),
		[SESSION_COMPILE]      = DO(COMPILE, CLIENT),
		[SESSION_WORK]         = DO(LOOK, CLIENT),
		[SESSION_CHANNELS]     = DO(TAKE_CHANNELS, CLIENT),
		[SESSION_LEARNED]      = DO(LEARN, CLIENT),
		[SESSION_POD_KNOWN]    = DO(NOTHING, CLIENT),
		[SESSION_DEADLINE]     = DO(NOTHING, CLIENT),
		IN_EVERY_STATE(CLIENT),
	},
};
// clang-format on

const struct session_step *session_next(enum session_state state, enum session_event event)
{
	return &steps[state][event];
}

const char *session_refusal_name(unsigned reason)
{
	static const char *const names[SESSION_REFUSALS] = {
		[WEIR_REFUSED_VERSION] = "version",   [WEIR_REFUSED_GPU] = "gpu",
		[WEIR_REFUSED_LIMIT] = "limit",       [WEIR_REFUSED_MESSAGE] = "message",
		[WEIR_REFUSED_INTERNAL] = "internal",
	};

	return reason < SESSION_REFUSALS && names[reason] ? names[reason] : "?";
}

struct weir_refused session_refused(enum weir_refusal reason, const char *text)
{
	struct weir_refused message = {.reason = reason};

	weir_header_init(&message.header, WEIR_REFUSED, sizeof(message));
	snprintf(message.text, sizeof(message.text), "%s", text);
	return message;
}
