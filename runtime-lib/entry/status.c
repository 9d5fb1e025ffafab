#include "entry/status.h"

#include "client/level-binding.h"
#include "client/stream-level.h"
#include "gates/demand.h"
#include "gates/gate.h"
#include "gates/priority.h"
#include "gates/start.h"
#include "launch/learn.h"
#include "launch/loops.h"
#include "launch/overrun.h"
#include "launch/preempt-slot.h"
#include "launch/workers.h"
#include "preempt/tuning.h"

/* Outstanding work is finished but for gates behind it, and they are closed, or soon may be. */
static bool is_done(struct client *client, const struct level_binding *binding)
{
	bool outstanding = false;

	if (!binding_contended(binding))
		return false;
	stream_for_each (s, client) {
		if (!stream_outstanding(s))
			continue;
		if (!preempt_done(s))
			return false;
		outstanding = true;
	}
	return outstanding;
}

static uint32_t status_flags(struct client *client, const struct level_binding *binding)
{
	return (client->concurrent ? WEIR_STATUS_CONCURRENT : 0) |
	       (launch_order_of(client)->ordered ? WEIR_STATUS_ORDERED : 0) |
	       (is_done(client, binding) ? WEIR_STATUS_DONE : 0);
}

void status_work(struct client *client, struct tick *tick)
{
	const struct totals *totals = &tick->totals;
	const struct gating *gating = gating_of(client);
	const struct learning *learning = learning_of(client);
	struct weir_status_page *status = status_page(tick->binding);
	uint64_t passed = gating->held ? 0 : tick->passed; /* held work does not run */
	const struct preempting *preempting = preempting_of(client);
	bool stopped = atomic_load(&control_page(tick->binding)->stopped_until);
	const struct loops_total loops = loops_tell(client, status, stopped);
	uint64_t evictions = loops.evictions;

	atomic_store(&status->launches, totals->begun);
	atomic_store(&status->outstanding, totals->outstanding);
	/* A launch has begun meanwhile, or demand lingers for the next. */
	if (!totals->outstanding && atomic_load(&demand_of(client)->shown) == DEMAND_SHOWN)
		atomic_store(&status->outstanding, 1);
	atomic_store(&status->gpu_time, totals->predicted + loops.ran);
	atomic_store(&status->remaining,
		     streams_remaining(client, passed, &learning_of(client)->late));
	atomic_store(&status->executed, totals->executed + loops.ran);
	atomic_store(&status->starts, atomic_load(&start_of(client)->starts));
	atomic_store(&status->starts_late, start_of(client)->late);
	atomic_store(&status->predictions, learning->predictions);
	atomic_store(&status->prediction_error, learning->prediction_error);
	if (learning->eviction_cost > 0)
		atomic_store(&status->eviction_cost,
			     (uint64_t)(learning->eviction_cost / learning->run_time));
	atomic_store(&status->busy_period, busy_period_known(&demand_of(client)->busy));
	atomic_store(&status->gates, atomic_load(&gating->gates));
	atomic_store(&status->gates_closed, atomic_load(&gating->gates_closed));
	atomic_store(&status->waits, gating->waits);
	atomic_store(&status->wait_time, gating->wait_time);
	for (size_t i = 0; i < WEIR_STATUS_FORMS; i++) {
		evictions += preempting->evictions[i];
		atomic_store(&status->form_launches[i], atomic_load(&preempting->launches[i]));
		atomic_store(&status->form_evictions[i], preempting->evictions[i]);
	}
	atomic_store(&status->evictions, evictions);
	atomic_store(&status->blocks_saved, preempting->blocks_saved);
	atomic_store(&status->blocks_drained, preempting->blocks_drained);
	atomic_store(&status->bytes_saved, preempting->bytes_saved);
	atomic_store(&status->partial_leaves, preempting->partial_leaves);
	atomic_store(&status->gpu_sms, sms_of(client)->of_gpu);
	atomic_store(&status->given_sms, sms_of(client)->of_gpu - sms_unused(client));
	atomic_store(&status->comparing, tuning_count(client));
	workers_tell(client, status);
	overrun_tell(client, tick, status);
	/* A shared bit is set by it, so what holds for bits of one's own (gates/demand.c) does
	 * here. */
	unsigned level = tick->binding->level;
	if (atomic_load(&streams_have_levels))
		level = streams_lowest(client, level);
	atomic_store(&status->level, level);
	atomic_store(&status->flags, status_flags(client, tick->binding));
}
