/* Sessions: the connections of clients, from accept to end of file.
 *
 *   accepted -> HELLO within 5 s -> welcomed, if need be once the pods are known -> gone
 *
 * A session ends when its socket does, when its process dies (a forked child may keep the socket
 * open), or when the client breaks the protocol. With it go its demand bit and all that it has. */
#pragma once

#include "daemon/agent.h"

#define SESSION_HELLO_NS 5000000000ull
/* Of one that sends more messages than this in that time none is read before it is over. */
#define SESSION_BURST    256
#define SESSION_BURST_NS 250000000ull
/* So long a client of before the agent's restart may wait to be welcomed, less than its bit is kept
 * for it. */
#define SESSION_LEVEL_NS 500000000ull
/* Less than libweir waits for the answer. */
#define SESSION_MEMORY_NS 700000000ull

/* Listens for clients. */
int sessions_init(struct agent *agent);
void sessions_deinit(struct agent *agent);

/* Something is known of the pods that was not: who waits to hear its level, or its limit of memory,
 * is told. */
void sessions_answer(struct agent *agent);

/* Tells all clients of @tenant its level. One that does not take the message is cut off. */
void session_tell_levels(struct agent *agent, struct tenant *tenant);
