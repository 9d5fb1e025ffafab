#include "launch/overrun.h"

#include "client/stream.h"
#include "gates/gate.h"
#include "launch/preempt-slot.h"

/* The next launch to finish is in no form and has no gates inside. */
static bool is_plain(const struct stream *stream, uint64_t completed)
{
	const struct preempt_slot *slot = atomic_load(&stream->slot);

	return atomic_load(&stream->gated_inside) <= completed &&
	       (!slot || atomic_load(&slot->seen) == atomic_load(&slot->last));
}

/* It is that one which is not finished: no other launch is outstanding, or a marker between it and
 * the next gate was not passed. */
static bool is_next(struct stream *stream, uint64_t completed)
{
	return atomic_load(&stream->begun) == completed + 1 ||
	       stream_markers_pending(stream->markers, atomic_load(&stream->life), completed + 1);
}

/* ns that the stream's next launch overruns. */
static uint64_t look(struct stream *stream, const struct tick *tick, bool closed, bool stopped)
{
	struct overrun *overrun = &stream->overrun;
	uint64_t completed = atomic_load(&stream->completed);
	uint32_t life = atomic_load(&stream->life);

	if (overrun->completed != completed || overrun->life != life ||
	    atomic_load(&stream->begun) <= completed || !is_plain(stream, completed))
		*overrun = (struct overrun){.completed = completed, .life = life};
	else if (!is_next(stream, completed)) /* a marker may come: then it is the same launch */
		overrun->time = 0;
	else if (overrun->began && (closed || overrun->time) && !stopped)
		overrun->time += tick->unattended;
	/* It was there at the look before, and gates are open. */
	overrun->began |= overrun->seen && !closed && !stopped;
	overrun->seen = atomic_load(&stream->begun) > completed;
	return overrun->time;
}

void overrun_tell(struct client *client, const struct tick *tick, struct weir_status_page *status)
{
	bool closed = gating_of(client)->held;
	bool stopped = atomic_load(&control_page(tick->binding)->stopped_until);
	uint64_t longest = 0;

	/* While a graph is captured, nobody knows what is finished. */
	if (!tick->driven || atomic_load(&capture_count))
		return;
	if (!atomic_load(&gating_of(client)->graph_levels))
		stream_for_each (s, client)
			longest = larger(longest, look(s, tick, closed, stopped));
	atomic_store(&status->overrun, longest);
}
