#include "gates/gate.h"

#include "weir/log.h"

#define GATE_FELT     (100 * NS_PER_US) /* ns of kernels of which a gate is more than a fortieth */
#define CONTENDED_FOR NS_PER_S          /* ns that gates stay dense */

/* To wait until a word is at most @n: the GPU tests whether (int32_t)(word - value) >= 0. */
#define NO_MORE_THAN(n) ((n) + 1u + (1u << 31))

struct gating gating_table[CLIENTS_MAX];

static bool holdable(const struct level_binding *binding)
{
	return binding_flag(binding, WEIR_CONTROL_HOLDABLE);
}

/* Whether such a gate waits for the hold word, too. */
static bool yields(enum gate_kind kind)
{
	return kind != GATE_ABOVE && kind != GATE_WHOLE_ABOVE;
}

/* Whether such a gate is open to demand that needs only a part of the SMs. */
static bool leaves_some(enum gate_kind kind)
{
	return kind != GATE_ALL && kind != GATE_ABOVE;
}

struct gate_words gate_words(const struct level_binding *binding, enum gate_kind kind)
{
	CUdeviceptr page = binding->wait ? load_relaxed(&binding->wait->gpu) : 0;
	struct gate_words words = {.demand = page};

	if (page && leaves_some(kind)) {
		words.demand = page + offsetof(struct weir_demand_page, whole);
		words.room = page + offsetof(struct weir_demand_page, sms);
		/* As kernels with `room` expect it (weir/preempt-abi.h). */
		static_assert(offsetof(struct weir_demand_page, whole) ==
				      offsetof(struct weir_demand_page, word) + sizeof(uint64_t),
			      "the word stands in front of it");
	}
	if (yields(kind) && holdable(binding))
		words.hold = load_relaxed(&binding->control->gpu) +
			     offsetof(struct weir_control_page, hold);
	return words;
}

static bool put(struct stream *stream, const struct level_binding *binding, enum gate_kind kind)
{
	struct gate_words words = gate_words(binding, kind);
	CUstreamBatchMemOpParams waits[3];
	unsigned n = 0;

	if (words.demand) {
		waits[n].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
		waits[n].waitValue.address = words.demand;
		waits[n].waitValue.value64 = 0;
		waits[n++].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	}
	if (kind == GATE_BESIDE && words.room) {
		waits[n].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
		waits[n].waitValue.address = words.room;
		waits[n].waitValue.value = NO_MORE_THAN(sms_unused(stream->client));
		waits[n++].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
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

static bool due(const struct stream *stream, uint64_t interval, enum gate_kind kind)
{
	int last = load_relaxed(&stream->gate_last);

	return load_relaxed(&stream->since_gate) >= interval ||
	       (last != GATE_ALL && last != (int)kind);
}

/* No gate of @kind is due behind the one that was put, or that there is no need of. */
static void passed(struct stream *stream, enum gate_kind kind)
{
	store_relaxed(&stream->since_gate, 0);
	store_relaxed(&stream->gate_last, kind);
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
	bool above = binding->lowered || atomic_load(&control_page(binding)->above);

	if (contended && above)
		return dense(binding);
	if (contended && holdable(binding))
		return GATE_INTERVAL_CONTENDED;
	return above ? GATE_INTERVAL_QUIET : GATE_INTERVAL_ALONE;
}

bool gate_is_closed(const struct client *client, const struct level_binding *binding,
		    enum gate_kind kind)
{
	if (!leaves_some(kind) || !binding->wait)
		return binding_closed(binding);
	const struct weir_demand_page *page = demand_page(binding->wait);
	bool more = kind == GATE_BESIDE && load_relaxed(&page->sms) > sms_unused(client);
	return more || load_relaxed(&page->whole) || load_relaxed(&control_page(binding)->hold);
}

bool gate_put(struct stream *stream, const struct level_binding *binding, enum gate_kind kind)
{
	struct gating *gating = gating_of(stream->client);

	if (binding_contended(binding))
		stream_leave_marker(stream);
	if (!put(stream, binding, kind))
		return false;
	if (kind == GATE_BESIDE)
		passed(stream, kind);
	else if (yields(kind) || !holdable(binding))
		passed(stream, gate_kind(true, leaves_some(kind)));
	store_relaxed(&gating->last, kind);
	if (add_relaxed(&gating->gates, 1) == 0)
		log_debug("gates at level %u", binding->level);
	bool closed = gate_is_closed(stream->client, binding, kind);
	if (closed)
		add_relaxed(&gating->gates_closed, 1);
	return closed;
}

/* The gate that a long kernel makes due would lengthen a short one behind it by a tenth. While
 * there is no higher-level client a few short kernels go first, and the gate comes before the next
 * long one. */
static bool goes_first(struct stream *stream, uint64_t interval, uint64_t predicted)
{
	uint64_t first = predicted + load_relaxed(&stream->gone_first);

	if (!predicted || interval < GATE_INTERVAL_ALONE || first > GATE_FELT)
		return false;
	store_relaxed(&stream->gone_first, first);
	return true;
}

static bool passes_at_once(const struct level_binding *binding, uint64_t predicted)
{
	const struct weir_control_page *control = control_page(binding);

	return predicted && predicted <= GATE_STARTS_MAX && !load_relaxed(&control->above) &&
	       !binding->lowered && !binding_closed(binding);
}

launch_path bool gate_pass(struct stream *stream, const struct level_binding *binding,
			   uint64_t predicted, bool starts, enum gate_kind kind)
{
	uint64_t interval = load_relaxed(&gating_of(stream->client)->interval);

	if (binding->lowered && interval > GATE_INTERVAL_QUIET) /* as the worker last saw it */
		interval = GATE_INTERVAL_QUIET;
	if (!due(stream, interval, kind) || goes_first(stream, interval, predicted))
		return false;
	store_relaxed(&stream->gone_first, 0);
	if (!starts || !passes_at_once(binding, predicted))
		return gate_put(stream, binding, kind);
	passed(stream, GATE_ALL);
	return false;
}

/* A gate costs a graph 3 to 5 us of each replay, whoever is there then: with one for each 400 us a
 * graph of 1.7 ms took 1.5 % longer (H100). Under MPS a higher-level client waits for the next one;
 * under time-slicing the hardware interrupts the graph. */
static uint64_t capture_interval(const struct client *client, const struct level_binding *binding)
{
	bool above = binding->lowered || atomic_load(&control_page(binding)->above);

	return above || client->concurrent ? GATE_INTERVAL_QUIET : GATE_INTERVAL_ALONE;
}

void gate_capture(struct stream *stream, const struct level_binding *binding)
{
	if (!due(stream, capture_interval(stream->client, binding), GATE_ALL) ||
	    !put(stream, binding, GATE_ALL))
		return;
	passed(stream, GATE_ALL);
	if (!(atomic_fetch_or(&gating_of(stream->client)->graph_levels, 1u << binding->level) &
	      1u << binding->level))
		log_debug("graphs captured now have gates of level %u inside", binding->level);
}

void gate_init(struct client *client)
{
	gating_of(client)->interval = GATE_INTERVAL_CONTENDED;
}

/* Its gates are closed, or may be at any time. Work above that does not close them is none of it.
 */
static bool is_contended(const struct client *client, const struct level_binding *binding)
{
	return gate_is_closed(client, binding, gate_of_native(client, binding)) ||
	       (holdable(binding) && binding_flag(binding, WEIR_CONTROL_CONTENDED));
}

void gate_look(struct client *client, struct tick *tick)
{
	tick->contended = tick->binding &&
			  (is_contended(client, tick->binding) || binding_reports(tick->binding));
}

/* The time with work outstanding behind closed gates, as seen at each look. */
static void account_wait(const struct client *client, struct gating *gating,
			 const struct tick *tick)
{
	enum gate_kind last = (enum gate_kind)load_relaxed(&gating->last);
	bool held = tick->totals.outstanding && gate_is_closed(client, tick->binding, last);

	if (held && gating->held)
		gating->wait_time += tick->passed;
	if (held && !gating->held)
		gating->waits++;
	gating->held = held;
}

void gate_work(struct client *client, struct tick *tick)
{
	struct gating *gating = gating_of(client);

	binding_expire_hold(tick->binding, tick->now);
	uint64_t closed = atomic_load(&gating->gates_closed);
	if (closed != gating->last_closed || is_contended(client, tick->binding))
		gating->contended_until = tick->now + CONTENDED_FOR;
	gating->last_closed = closed;
	atomic_store(&gating->interval,
		     gate_interval(tick->binding, tick->now < gating->contended_until));
	account_wait(client, gating, tick);
}
