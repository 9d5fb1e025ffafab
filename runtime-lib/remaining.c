#include "remaining.h"

#include "preempt.h"

#include "weir/tickets.h"

static double part_before(const struct weir_persistent *hidden, uint64_t ticket)
{
	uint32_t last = ticket < hidden->tickets ? (uint32_t)ticket : hidden->tickets;

	return (double)weir_blocks_before(hidden, last) / hidden->blocks;
}

struct tickets_seen remaining_tickets(const struct weir_words *words,
				      const struct weir_persistent *hidden, uint32_t workers,
				      bool resumable)
{
	bool closed = words->ticket & WEIR_TICKET_CLOSED;
	/* What is drawn from a closed launch is refused. */
	uint64_t given =
		closed ? words->restart : (uint64_t)words->ticket + (resumable ? 0 : workers);

	return (struct tickets_seen){
		.begun = words->ticket != 0,
		.done = part_before(hidden, given > workers ? given - workers : 0),
		.given = part_before(hidden, given),
	};
}

/* What a stream's work has run since some of it was seen finished, if so many share the GPU. */
static uint64_t ran(struct stream *stream, const struct reached *reached, uint64_t streams,
		    uint64_t passed)
{
	uint64_t completed = atomic_load(&stream->completed);
	bool same = completed == stream->seen && reached->before == stream->seen_before;

	stream->ran = same ? stream->ran + passed / streams : 0;
	stream->seen = completed;
	stream->seen_before = reached->before;
	if (stream->ran < reached->low)
		stream->ran = reached->low;
	if (stream->ran > reached->high)
		stream->ran = reached->high;
	return stream->ran;
}

static uint64_t remaining_in(struct stream *stream, uint64_t streams, uint64_t passed)
{
	/* In this order: both only grow. */
	uint64_t executed = atomic_load(&stream->executed);
	uint64_t unfinished = atomic_load(&stream->predicted) - executed;
	struct reached reached = preempt_reached(stream);

	if (!stream_outstanding(stream)) {
		stream->seen = STREAM_IDLE;
		return 0;
	}
	if (reached.before < executed)
		reached.before = executed;
	uint64_t done = reached.before - executed + ran(stream, &reached, streams, passed);
	return unfinished > done ? unfinished - done : unfinished != 0;
}

uint64_t remaining(struct client *client, uint64_t passed)
{
	uint64_t streams = 0, sum = 0;

	stream_for_each (s, client)
		streams += stream_outstanding(s) != 0;
	stream_for_each (s, client)
		sum += remaining_in(s, streams ? streams : 1, passed);
	return sum;
}
