/* Sessions: the connections of clients, from accept to end of file. Their states and what moves
 * them are a table (session-state.h); this module performs its actions.
 *
 * A session ends when its socket does, when its process dies (a forked child may keep the socket
 * open), or when the client breaks the protocol. Its demand bit and all that it has go with it. */
#pragma once

#include <stdio.h>

#include "daemon/sessions.h"

#define SESSION_HELLO_NS 5000000000ull
/* A client of before the agent's restart waits this long for news of its pod. Shorter than the time
 * for which the agent keeps its bit (GPU_GRACE_NS). */
#define SESSION_LEVEL_NS 500000000ull
/* Shorter than libweir waits for the answer. */
#define SESSION_MEMORY_NS 700000000ull
/* For an MPS daemon to start, which takes seconds on a busy node: a process that is not told in
 * time is time-sliced as long as it lives. Shorter than WEIR_PIPES_WAIT_MS. */
#define SESSION_PIPES_NS 9000000000ull
/* After this many messages within this time, the agent reads no more until the time is over. */
#define SESSION_BUSY_MESSAGES 256
#define SESSION_BUSY_NS       250000000ull

/* Listens for clients. The members before `server` are set. */
int sessions_init(struct sessions *sessions);
void sessions_deinit(struct sessions *sessions);

/* Decides on @tenant, and tells its clients if their level changes. */
void sessions_decide(struct sessions *sessions, struct tenant *tenant);
/* The pods or the MPS daemons changed: answers the sessions that waited for that. */
void sessions_news(struct sessions *sessions);
void sessions_metrics_write(FILE *out, const struct sessions *sessions);
