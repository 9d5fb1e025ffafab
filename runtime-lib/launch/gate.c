#include "launch/gate.h"

#include "client/trail.h"

#include "weir/log.h"

#define GATE_FELT 100000u /* ns of kernels of which a gate is more than a fortieth */

bool gate_demanded(const struct standing *standing)
{
	return standing->wait &&
	       atomic_load_explicit(&client_demand(standing->wait)->word, memory_order_relaxed);
}

bool gate_closed(const struct standing *standing)
{
	return gate_demanded(standing) ||
	       atomic_load_explicit(&client_control(standing)->hold, memory_order_relaxed);
}

static bool flagged(const struct standing *standing, uint32_t flag)
{
	return atomic_load_explicit(&client_control(standing)->flags, memory_order_relaxed) & flag;
}

bool gate_urgent(const struct standing *standing)
{
	return flagged(standing, WEIR_CONTROL_URGENT);
}

bool gate_tells(const struct standing *standing)
{
	return flagged(standing, WEIR_CONTROL_TELL);
}

static bool holdable(const struct standing *standing)
{
	return flagged(standing, WEIR_CONTROL_HOLDABLE);
}

bool gate_expected(const struct standing *standing)
{
	return gate_closed(standing) ||
	       (holdable(standing) && flagged(standing, WEIR_CONTROL_CONTENDED));
}

struct gate_words gate_words(const struct standing *standing, bool yields)
{
	struct gate_words words = {0};

	if (standing->wait)
		words.demand = atomic_load_explicit(&standing->wait->gpu, memory_order_relaxed);
	if (yields && holdable(standing))
		words.hold = atomic_load_explicit(&standing->control->gpu, memory_order_relaxed) +
			     offsetof(struct weir_control_page, hold);
	return words;
}

static bool put(struct stream *stream, const struct standing *standing, bool yields)
{
	struct gate_words words = gate_words(standing, yields);
	CUstreamBatchMemOpParams waits[2];
	unsigned n = 0;

	if (words.demand) {
		waits[n].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
		waits[n].waitValue.address = words.demand;
		waits[n].waitValue.value64 = 0;
		waits[n++].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	}
	if (words.hold) {
		waits[n].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
		waits[n].waitValue.address = words.hold;
		waits[n].waitValue.value64 = 0;
		waits[n++].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	}
	if (!n)
		return false;
	CUresult result = real(cuStreamBatchMemOp_v2)(stream->handle, n, waits, 0);
	if (result != CUDA_SUCCESS) {
		log_limited(LOG_WARNING, 60,
			    "the driver takes no gate (error %d): launches go on ungated", result);
		return false;
	}
	return true;
}

static bool due(const struct stream *stream, uint64_t interval)
{
	return atomic_load_explicit(&stream->since_gate, memory_order_relaxed) >= interval;
}

static uint64_t dense(const struct standing *standing)
{
	uint32_t beside = atomic_load(&client_control(standing)->beside);

	if (beside > GATE_BESIDE_MAX)
		beside = GATE_BESIDE_MAX;
	return GATE_INTERVAL_CONTENDED / (beside ? beside : 1);
}

uint64_t gate_interval(const struct standing *standing, bool contended)
{
	bool above = atomic_load(&client_control(standing)->above) != 0;

	if (contended && above)
		return dense(standing);
	if (contended && holdable(standing))
		return GATE_INTERVAL_CONTENDED;
	return above ? GATE_INTERVAL_QUIET : GATE_INTERVAL_ALONE;
}

bool gate_put(struct stream *stream, const struct standing *standing, bool yields)
{
	struct client *client = stream->client;

	if (gate_expected(standing))
		trail_leave(stream);
	if (!put(stream, standing, yields))
		return false;
	if (yields || !holdable(standing))
		atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&client->gates, 1, memory_order_relaxed) == 0)
		log_debug("gates at level %u", standing->level);
	bool closed = gate_closed(standing);
	if (closed)
		atomic_fetch_add_explicit(&client->gates_closed, 1, memory_order_relaxed);
	return closed;
}

/* A short kernel behind a long one would be a tenth longer by the gate that the long one made due.
 * While nobody is above a few of them go first, and the gate is in front of the next long one.
 */
static bool goes_first(struct stream *stream, uint64_t interval, uint64_t predicted)
{
	uint64_t first =
		predicted + atomic_load_explicit(&stream->gone_first, memory_order_relaxed);

	if (!predicted || interval < GATE_INTERVAL_ALONE || first > GATE_FELT)
		return false;
	atomic_store_explicit(&stream->gone_first, first, memory_order_relaxed);
	return true;
}

static bool passes_at_once(const struct standing *standing, uint64_t predicted)
{
	const struct weir_control_page *control = client_control(standing);

	return predicted && predicted <= GATE_STARTS_MAX &&
	       !atomic_load_explicit(&control->above, memory_order_relaxed) &&
	       !gate_closed(standing);
}

bool gate_pass(struct stream *stream, const struct standing *standing, uint64_t predicted,
	       bool starts)
{
	uint64_t interval =
		atomic_load_explicit(&stream->client->gate_interval, memory_order_relaxed);

	if (!due(stream, interval) || goes_first(stream, interval, predicted))
		return false;
	atomic_store_explicit(&stream->gone_first, 0, memory_order_relaxed);
	if (!starts || !passes_at_once(standing, predicted))
		return gate_put(stream, standing, true);
	atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	return false;
}

void gate_capture(struct stream *stream, const struct standing *standing)
{
	if (!due(stream, GATE_INTERVAL_QUIET) || !put(stream, standing, true))
		return;
	atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	if (!(atomic_fetch_or(&stream->client->graph_levels, 1u << standing->level) &
	      1u << standing->level))
		log_debug("graphs captured now have gates of level %u inside", standing->level);
}
