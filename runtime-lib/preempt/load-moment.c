#include "preempt/load-moment.h"

#include "client/stream-level.h"

#define IDLE_WAIT (30 * NS_PER_MS)  /* ns that code waits for a moment in which nothing runs */
#define MOVING    (250 * NS_PER_MS) /* ns: launches that ended this lately show that work goes on */

/* Code that is to be loaded. */
struct load_wait {
	uint64_t since;     /* 0: there is none */
	uint64_t completed; /* launches, when last seen; */
	uint64_t moved;     /* when that was seen to change; 0: not yet */
};

static struct load_wait load_waits[CLIENTS_MAX];

bool load_moment(struct client *client, bool awaited)
{
	const struct level_binding *binding = streams_binding(client);
	struct load_wait *wait = &load_waits[client->index];
	uint64_t now = client_now(), completed = 0;
	bool idle = true, will_end = true;

	if (!binding || (binding_closed(binding) && !awaited))
		return false;
	stream_for_each (s, client) {
		idle &= !stream_outstanding(s);
		will_end &= stream_will_end(s);
		completed += atomic_load(&s->completed);
	}
	if (!wait->since)
		*wait = (struct load_wait){.since = now, .completed = completed};
	if (completed != wait->completed)
		wait->moved = now;
	wait->completed = completed;
	return idle || (!binding_closed(binding) && will_end && now - wait->since > IDLE_WAIT &&
			wait->moved && now - wait->moved < MOVING);
}

void load_moment_over(const struct client *client)
{
	load_waits[client->index].since = 0;
}

void load_moment_watch(struct client *client)
{
	stream_for_each (s, client) {
		if (stream_outstanding(s) && atomic_load(&s->completed) >= atomic_load(&s->marked))
			stream_want_marker(s);
	}
}
