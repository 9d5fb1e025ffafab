/* What a session is answered: the actions of the state table (session-state.h) that send something,
 * and whether it is too early for them. */
#pragma once

#include "daemon/sessions.h"

struct session {
	struct sessions *sessions;
	struct session *prev, *next;
	enum session_state state;
	struct loop_timer deadline; /* of the state */
	int fd, process;
	pid_t pid;
	struct loop_io socket, death;
	struct loop_timer pause; /* reading goes on when it expires */
	bool paused;
	uint64_t busy_since;
	unsigned n_messages; /* since then */

	struct tenant *tenant;
	const struct gpu *only;  /* the client may use this GPU alone; NULL: any */
	struct weir_hello hello; /* answered in SESSION_AWAITS_LEVEL */
	uint8_t asked[16];       /* the GPU of the last MEMORY or PIPES */
	struct client *client;   /* from SESSION_CLIENT on */
	struct memory_wait wait; /* in SESSION_MEMORY_WAIT */
	struct compile_client compile;
};

void session_send_refused(struct sessions *sessions, int fd, enum weir_refusal reason, pid_t pid,
			  const char *text, bool limited);
/* Always false, for callers that return what the refusal means. */
bool session_refuse(const struct session *session, enum weir_refusal reason, const char *text);

/* These return false after a refusal, which ends the session. */
bool session_welcome(struct session *session);
/* The client ends the connection. */
bool session_tell_account(struct session *session);
bool session_note_wait(struct session *session, const struct weir_memory_waits *message);
/* The process ends the connection. */
bool session_tell_pipes(const struct session *session);
bool session_tell_pipes_later(const struct session *session);

/* A client from before the agent's restart still acts on its old level. Before the pods are known
 * we would tell it another one for a moment, and a pod above would wait for pods below. */
bool session_level_unknown(const struct session *session);
/* A new pod may be here before the API server tells of it. Then nobody has said yet whether the
 * container has a limit. */
bool session_limit_unknown(const struct session *session);
/* The level of a new pod is not known yet, or its daemon starts. */
bool session_pipes_unknown(const struct session *session);
