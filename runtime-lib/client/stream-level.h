/* Levels of streams: a program may give a stream a lower one than its process has (weir/weir.h,
 * gates/README.md). */
#pragma once

#include "client/level-binding.h"
#include "client/stream.h"

/* The binding of a stream's launches. */
static inline const struct level_binding *stream_binding(const struct stream *stream,
							 const struct level_binding *binding)
{
	uint8_t level = load_relaxed(&stream->level);

	return level < binding->level && binding->lower[level] ? binding->lower[level] : binding;
}

extern _Atomic int streams_have_levels; /* some stream of the process was given one */

/* The lowest level at which work is outstanding in this process on the client's GPU; @level: that
 * of the client. */
unsigned streams_lowest(const struct client *client, unsigned level);

/* The binding of the lowest level at which the client has work outstanding, else the client's.
 * NULL: none. */
const struct level_binding *streams_binding(const struct client *client);
