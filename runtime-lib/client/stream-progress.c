/* How far streams are: markers in them, what the worker sees finished, and what is left. */
#include "client/stream.h"

#include "client/level-binding.h"

#define STREAM_IDLE UINT64_MAX /* `seen` */
#define LATE        NS_PER_MS  /* ns beyond twice the predicted time */

#define MARKER_GAP   (100 * NS_PER_US) /* ns of predicted work from one marker to the next, */
#define MARKER_PARTS (STREAM_MARKERS * 3 / 4) /* or that part of what is queued, if it is more */

void stream_want_marker(struct stream *stream)
{
	CUevent marker;

	if (!stream->marker) {
		beside_captures();
		if (real(cuEventCreate)(&marker, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
			stream->marker = marker;
	}
	if (stream->marker)
		atomic_fetch_or(&stream->marker_wanted, STREAM_MARKER);
}

void stream_leave_marker_evenly(struct stream *stream, uint64_t predicted)
{
	uint64_t executed = load_relaxed(&stream->executed);
	uint64_t queued = predicted > executed ? predicted - executed : 0;

	if (predicted - load_relaxed(&stream->left_at) < larger(MARKER_GAP, queued / MARKER_PARTS))
		return;
	store_relaxed(&stream->left_at, predicted);
	stream_leave_marker(stream);
}

void stream_completed(struct stream *stream, const struct progress *progress)
{
	if (atomic_load(&stream->life) != progress->life)
		return;
	stream_raise_to(&stream->completed, progress->issued);
	stream_raise_to(&stream->executed, progress->predicted);
}

bool stream_broken(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
	case CUDA_ERROR_MPS_CLIENT_TERMINATED:
	case CUDA_ERROR_EXTERNAL_DEVICE:
		return true;
	default:
		return false;
	}
}

static void add_up(struct client *client, struct totals *totals)
{
	*totals = (struct totals){
		.begun = atomic_load(&streams_of(client)->gone_launches),
		.predicted = atomic_load(&streams_of(client)->gone_predicted),
	};
	totals->executed = totals->predicted;
	stream_for_each (s, client) {
		uint64_t outstanding = stream_outstanding(s);
		totals->outstanding += outstanding;
		totals->begun += atomic_load(&s->begun);
		if (atomic_load(&s->of_loop))
			continue;
		totals->executed += atomic_load(&s->executed); /* first: it is never more */
		totals->predicted += atomic_load(&s->predicted);
	}
}

/* Sees how far a stream is, without touching it while anything is captured. False: its context is
 * broken. */
static bool look(struct stream *stream)
{
	struct progress marked = {.life = atomic_load(&stream->life),
				  .issued = atomic_load(&stream->marked),
				  .predicted = atomic_load(&stream->marked_predicted)};
	CUevent marker = atomic_load(&stream->marker);
	CUresult result = marker ? real(cuEventQuery)(marker) : CUDA_ERROR_NOT_READY;

	/* If the marker was recorded again meanwhile, it is a later point. */
	if (marked.issued && result == CUDA_SUCCESS)
		stream_completed(stream, &marked);
	if (stream->per_thread || stream_broken(result) || atomic_load(&capture_count))
		return !stream_broken(result);
	struct progress issued = stream_progress(stream);
	result = real(cuStreamQuery)(stream->handle);
	if (result == CUDA_SUCCESS)
		stream_completed(stream, &issued);
	return !stream_broken(result);
}

/* Nothing of a broken context runs. */
static void complete_all(struct client *client)
{
	stream_for_each (s, client) {
		struct progress issued = stream_progress(s);
		stream_completed(s, &issued);
	}
}

static void follow_markers(struct stream *stream)
{
	struct progress passed;
	unsigned next = 0;

	while (stream_markers_passed(stream->markers, &next, &passed))
		stream_completed(stream, &passed);
}

void stream_look(struct client *client, struct tick *tick)
{
	add_up(client, &tick->totals);
	tick->moved = tick->totals.begun != streams_of(client)->begun;
}

/* Somebody wants to know how far streams are that never run dry. */
static bool wants_markers(const struct tick *tick)
{
	return tick->contended ||
	       (tick->binding && binding_flag(tick->binding, WEIR_CONTROL_SLICED));
}

static void leave_evenly(struct stream *stream, bool evenly)
{
	bool before = atomic_load(&stream->marker_wanted) & STREAM_MARKERS_EVENLY;

	if (evenly && !before)
		atomic_fetch_or(&stream->marker_wanted, STREAM_MARKERS_EVENLY);
	else if (!evenly && before)
		atomic_fetch_and(&stream->marker_wanted, ~STREAM_MARKERS_EVENLY);
}

/* While the client is contended or sliced, markers show how far such streams are. A minimum rate
 * is kept in as short steps as work is reported, and a speed is as exact. */
void stream_drive(struct client *client, struct tick *tick)
{
	stream_for_each (s, client) {
		if (!stream_outstanding(s))
			continue;
		if (!look(s)) {
			complete_all(client);
			return;
		}
		follow_markers(s);
		leave_evenly(s, tick->binding && binding_reports(tick->binding));
		if (!wants_markers(tick))
			continue;
		s->markers = stream_markers_want(s->markers);
		if (atomic_load(&s->marked) <= atomic_load(&s->completed))
			stream_want_marker(s);
	}
}

void stream_work(struct client *client, struct tick *tick)
{
	struct streams *streams = streams_of(client);

	if (tick->driven)
		add_up(client, &tick->totals);
	streams->begun = tick->totals.begun;
	/* A stream that ends while all are added up is missed once; the sum must not fall. */
	streams->executed = larger(tick->totals.executed, streams->executed);
	tick->totals.executed = streams->executed;
}

/* ns that the stream's work has run since some of it was seen finished, if @streams share the GPU.
 */
static uint64_t ran(struct stream *stream, uint64_t streams, uint64_t passed)
{
	uint64_t completed = atomic_load(&stream->completed);
	uint32_t life = atomic_load(&stream->life);

	if (!stream_outstanding(stream) || stream->seen_life != life)
		stream->seen = STREAM_IDLE;
	stream->seen_life = life;
	if (!stream_outstanding(stream))
		return 0;
	stream->ran = completed == stream->seen ? stream->ran + passed / streams : 0;
	stream->seen = completed;
	return stream->ran;
}

uint64_t streams_remaining(struct client *client, uint64_t passed, bool *late)
{
	uint64_t streams = 0, sum = 0;

	stream_for_each (s, client)
		streams += stream_outstanding(s) != 0;
	stream_for_each (s, client) {
		/* In this order: both only grow. */
		uint64_t executed = atomic_load(&s->executed);
		uint64_t left = atomic_load(&s->predicted) - executed;
		uint64_t done = ran(s, streams ? streams : 1, passed);
		*late |= left && done > 2 * left + LATE;
		sum += left > done ? left - done : left != 0;
	}
	return sum;
}
