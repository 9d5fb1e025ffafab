#include "client/stream-level.h"

_Atomic int streams_have_levels;

static unsigned lowest_of(const struct client *client, unsigned level)
{
	uint32_t gone = atomic_load(&streams_of(client)->gone_level);
	unsigned lowest = (unsigned)smaller(level, streams_gone_level(gone));

	stream_for_each (s, client) {
		if (atomic_load(&s->level) < lowest && stream_outstanding(s))
			lowest = atomic_load(&s->level);
	}
	return lowest;
}

unsigned streams_lowest(const struct client *client, unsigned level)
{
	client_for_each (other) {
		if (atomic_load(&other->state) == CLIENT_LIVE && other->device == client->device)
			level = lowest_of(other, level);
	}
	return level;
}

const struct level_binding *streams_binding(const struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding || !atomic_load(&streams_of(client)->levels))
		return binding;
	unsigned lowest = lowest_of(client, binding->level);
	return lowest < binding->level && binding->lower[lowest] ? binding->lower[lowest] : binding;
}
