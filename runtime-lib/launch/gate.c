#include "launch/gate.h"

#include "client/stream-markers.h"

#include "weir/log.h"

#define GATE_FELT 100000u /* ns of kernels of which a gate is more than a fortieth */

bool gate_demanded(const struct level_binding *binding)
{
	return binding->wait &&
	       atomic_load_explicit(&demand_page(binding->wait)->word, memory_order_relaxed);
}

bool gate_closed(const struct level_binding *binding)
{
	return gate_demanded(binding) ||
	       atomic_load_explicit(&control_page(binding)->hold, memory_order_relaxed);
}

static bool flagged(const struct level_binding *binding, uint32_t flag)
{
	return atomic_load_explicit(&control_page(binding)->flags, memory_order_relaxed) & flag;
}

bool gate_urgent(const struct level_binding *binding)
{
	return flagged(binding, WEIR_CONTROL_URGENT);
}

bool gate_tells(const struct level_binding *binding)
{
	return flagged(binding, WEIR_CONTROL_TELL);
}

static bool holdable(const struct level_binding *binding)
{
	return flagged(binding, WEIR_CONTROL_HOLDABLE);
}

bool gate_expected(const struct level_binding *binding)
{
	return gate_closed(binding) ||
	       (holdable(binding) && flagged(binding, WEIR_CONTROL_CONTENDED));
}

struct gate_words gate_words(const struct level_binding *binding, bool yields)
{
	struct gate_words words = {0};

	if (binding->wait)
		words.demand = atomic_load_explicit(&binding->wait->gpu, memory_order_relaxed);
	if (yields && holdable(binding))
		words.hold = atomic_load_explicit(&binding->control->gpu, memory_order_relaxed) +
			     offsetof(struct weir_control_page, hold);
	return words;
}

static bool put(struct stream *stream, const struct level_binding *binding, bool yields)
{
	struct gate_words words = gate_words(binding, yields);
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

static uint64_t dense(const struct level_binding *binding)
{
	uint32_t beside = atomic_load(&control_page(binding)->beside);

	if (beside > GATE_BESIDE_MAX)
		beside = GATE_BESIDE_MAX;
	return GATE_INTERVAL_CONTENDED / (beside ? beside : 1);
}

uint64_t gate_interval(const struct level_binding *binding, bool contended)
{
	bool above = atomic_load(&control_page(binding)->above) != 0;

	if (contended && above)
		return dense(binding);
	if (contended && holdable(binding))
		return GATE_INTERVAL_CONTENDED;
	return above ? GATE_INTERVAL_QUIET : GATE_INTERVAL_ALONE;
}

bool gate_put(struct stream *stream, const struct level_binding *binding, bool yields)
{
	struct client *client = stream->client;

	if (gate_expected(binding))
		stream_markers_leave(stream);
	if (!put(stream, binding, yields))
		return false;
	if (yields || !holdable(binding))
		atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&client->gates, 1, memory_order_relaxed) == 0)
		log_debug("gates at level %u", binding->level);
	bool closed = gate_closed(binding);
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

static bool passes_at_once(const struct level_binding *binding, uint64_t predicted)
{
	const struct weir_control_page *control = control_page(binding);

	return predicted && predicted <= GATE_STARTS_MAX &&
	       !atomic_load_explicit(&control->above, memory_order_relaxed) &&
	       !gate_closed(binding);
}

bool gate_pass(struct stream *stream, const struct level_binding *binding, uint64_t predicted,
	       bool starts)
{
	uint64_t interval =
		atomic_load_explicit(&stream->client->gate_interval, memory_order_relaxed);

	if (!due(stream, interval) || goes_first(stream, interval, predicted))
		return false;
	atomic_store_explicit(&stream->gone_first, 0, memory_order_relaxed);
	if (!starts || !passes_at_once(binding, predicted))
		return gate_put(stream, binding, true);
	atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	return false;
}

void gate_capture(struct stream *stream, const struct level_binding *binding)
{
	if (!due(stream, GATE_INTERVAL_QUIET) || !put(stream, binding, true))
		return;
	atomic_store_explicit(&stream->since_gate, 0, memory_order_relaxed);
	if (!(atomic_fetch_or(&stream->client->graph_levels, 1u << binding->level) &
	      1u << binding->level))
		log_debug("graphs captured now have gates of level %u inside", binding->level);
}
