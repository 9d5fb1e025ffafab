/* Kernels on the GPU that count as no work of their client: launches of before it had a level, and
 * the last instructions of a loop whose blocks have told that they leave. Two processes in short
 * slices stand still while both have work, so the agent must know of all of it to give them turns.
 * Launches in per-thread default streams are missed: only their own thread can ask for these. */
#pragma once

#include "client/stream.h"
#include "client/subsystem.h"

/* The stream may have such work from now on. The worker looks at @when (client_now()), once the
 * client has a level: it is work until the stream's end is seen. */
static inline void uncounted_begin(struct stream *stream, uint64_t when)
{
	atomic_store(&stream->uncounted, when);
}

/* Launch path: the client has no level. */
static inline void uncounted_launch(struct stream *stream)
{
	/* The worker cannot name a stream of another thread. */
	if (!load_relaxed(&stream->uncounted) && !stream->per_thread)
		uncounted_begin(stream, 1); /* at its next look */
}

/* The stream's end was seen, or another launch of it is counted. */
static inline void uncounted_end(struct stream *stream)
{
	atomic_store(&stream->uncounted, 0);
}

/* Columns of the table (subsystem.h). */
void uncounted_look(struct client *client, struct tick *tick);
void uncounted_drive(struct client *client, struct tick *tick);
