#include "launch/uncounted.h"

#include "client/stream-level.h"
#include "gates/demand.h"

void uncounted_look(struct client *client, struct tick *tick)
{
	if (!tick->binding)
		return;
	stream_for_each (s, client) {
		uint64_t due = atomic_load(&s->uncounted), now = tick->now;
		tick->uncounted |= due && due <= now;
		if (due > now)
			tick->alarm = tick->alarm ? smaller(tick->alarm, due - now) : due - now;
	}
}

/* The last launch counts as not finished again; if there is none, one more launch counts. */
static void count(struct stream *stream, const struct level_binding *binding)
{
	uint64_t issued = atomic_load(&stream->issued);

	if (!issued || !atomic_compare_exchange_strong(&stream->completed, &issued, issued - 1)) {
		atomic_fetch_add(&stream->begun, 1);
		atomic_fetch_add(&stream->issued, 1);
	}
	demand_raise(stream->client, stream_binding(stream, binding), 0, SMS_WHOLE);
}

void uncounted_drive(struct client *client, struct tick *tick)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	/* A query would spoil a capture. */
	if (!binding || atomic_load(&capture_count))
		return;
	stream_for_each (s, client) {
		uint64_t due = atomic_load(&s->uncounted);
		if (!due || due > tick->now)
			continue;
		CUresult result = real(cuStreamQuery)(s->handle);
		/* Not if another launch came meanwhile. */
		if (atomic_compare_exchange_strong(&s->uncounted, &due, 0) &&
		    result == CUDA_ERROR_NOT_READY && !stream_outstanding(s))
			count(s, binding);
	}
}
