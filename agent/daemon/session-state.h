/* The states of a session and the events that move it. Pure: no socket, no memory. Everything that
 * a client can say passes through one table, session_next().
 *
 *   OPEN ── HELLO ─────────────────▶ CLIENT
 *   OPEN ── HELLO, level unknown ──▶ AWAITS_LEVEL ── pod known, or deadline ──▶ CLIENT
 *   OPEN ── MEMORY ────────────────▶ OPEN
 *   OPEN ── MEMORY, limit unknown ─▶ AWAITS_LIMIT ── pod known ──▶ OPEN
 *   OPEN ── PIPES ─────────────────▶ OPEN
 *   OPEN ── PIPES, no server yet ──▶ AWAITS_PIPES ── server, or deadline ──▶ OPEN
 *   OPEN ── MEMORY_WAITS ──────────▶ MEMORY_WAIT
 *   any  ── misuse, or deadline ───▶ GONE, with REFUSED
 *   any  ── end of the connection ─▶ GONE
 *
 * While a session waits, the agent reads nothing from it. Each state has one deadline (session.c).
 */
#pragma once

#include <stdint.h>

#include "weir/protocol.h"

enum session_state {
	SESSION_OPEN,
	SESSION_AWAITS_LEVEL, /* the answer to its HELLO waits for news of its pod */
	SESSION_AWAITS_LIMIT, /* the answer to its MEMORY does */
	SESSION_AWAITS_PIPES, /* the answer to its PIPES does, or for an MPS daemon */
	SESSION_MEMORY_WAIT,  /* an allocation waits; its end is the connection's */
	SESSION_CLIENT,       /* welcomed */
	SESSION_GONE,
	SESSION_STATES = SESSION_GONE,
};

enum session_event {
	SESSION_HELLO,
	SESSION_HELLO_EARLY, /* its level is not known yet */
	SESSION_MEMORY,
	SESSION_MEMORY_EARLY, /* its limit is not known yet */
	SESSION_PIPES,
	SESSION_PIPES_EARLY, /* its level is not known yet, or the level's daemon starts */
	SESSION_MEMORY_WAITS,
	SESSION_COMPILE,
	SESSION_WORK,
	SESSION_CHANNELS,
	SESSION_LEARNED,
	SESSION_FOREIGN, /* a message that only the agent sends */
	SESSION_UNKNOWN, /* a message of a later library, which expects old agents to ignore it */
	SESSION_BAD_VERSION,
	SESSION_MALFORMED,
	SESSION_POD_KNOWN, /* what the session waits for is known now */
	SESSION_DEADLINE,
	SESSION_END, /* socket closed, or process dead */
	SESSION_EVENTS,
};

enum session_action {
	SESSION_DO_NOTHING = 1, /* 0: the table lacks an entry */
	SESSION_DO_WELCOME,
	SESSION_DO_TELL_ACCOUNT,
	SESSION_DO_NOTE_WAIT,
	SESSION_DO_TELL_PIPES,
	SESSION_DO_TELL_PIPES_LATER,
	SESSION_DO_HURRY_PODS,
	SESSION_DO_COMPILE,
	SESSION_DO_LOOK,
	SESSION_DO_TAKE_CHANNELS,
	SESSION_DO_LEARN,
	SESSION_DO_REFUSE,
};

struct session_step {
	enum session_action action;
	enum session_state next; /* if the action succeeds; otherwise SESSION_GONE */
	enum weir_refusal reason;
	const char *text; /* of a refusal; NULL: weir_check_text() says it */
};

/* @type is read only if @check is WEIR_CHECK_OK. */
enum session_event session_event_of(enum weir_check check, uint16_t type);
const struct session_step *session_next(enum session_state state, enum session_event event);

#define SESSION_REFUSALS (WEIR_REFUSED_INTERNAL + 1)
/* Short names of refusals, for metrics and the log. */
const char *session_refusal_name(unsigned reason);
struct weir_refused session_refused(enum weir_refusal reason, const char *text);
