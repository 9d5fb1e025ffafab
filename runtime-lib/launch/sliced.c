#include "launch/sliced.h"

#include "client/stream.h"
#include "gates/gate.h"
#include "launch/preempt-slot.h"

/* The next launch to finish has gates inside. */
static bool is_next(const struct stream *stream, uint64_t completed)
{
	return completed + 1 >= atomic_load(&stream->gated_since) &&
	       completed + 1 <= atomic_load(&stream->gated_inside);
}

static void look(struct stream *stream, struct preempting *preempting, bool closed)
{
	struct sliced *sliced = &stream->sliced;
	uint64_t completed = atomic_load(&stream->completed);
	uint32_t life = atomic_load(&stream->life);

	if (sliced->completed != completed || sliced->life != life || !is_next(stream, completed))
		*sliced = (struct sliced){.completed = completed, .life = life};
	if (sliced->away && !closed)
		preempting->evictions[WEIR_SLICED]++;
	/* It was there at the look before. */
	sliced->began |= sliced->seen && !closed;
	sliced->away = sliced->began && closed;
	sliced->seen = is_next(stream, completed);
}

void sliced_work(struct client *client, struct tick *tick)
{
	if (!tick->driven)
		return;
	stream_for_each (s, client)
		look(s, preempting_of(client), gating_of(client)->held);
}
