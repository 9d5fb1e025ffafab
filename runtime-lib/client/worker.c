#include "client/worker.h"

#include "launch/capture.h"
#include "client/demand.h"
#include "preempt/function.h"
#include "launch/gate.h"
#include "client/hold.h"
#include "measure/learn.h"
#include "client/link.h"
#include "measure/predict.h"
#include "preempt/preempt.h"
#include "launch/priority.h"
#include "client/start.h"
#include "client/stream.h"
#include "shim/thread.h"
#include "client/stream-markers.h"

#include "weir/log.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long until the next look, in ns. */
#define TICK_LINGERING 50000u    /* demand is shown, and no launch is outstanding */
#define TICK_STALLED   200000u   /* launches are outstanding and no new one came */
#define TICK_CONTENDED 500000u   /* work is outstanding, and equals have some, too */
#define TICK_BUSY      1000000u  /* launches keep coming */
#define TICK_IDLE      20000000u /* nothing outstanding */
#define TICK_ASLEEP    50000000u /* and so for a second; worker_wake() makes a system call */
#define ASLEEP_AFTER   1000000000u
#define STALE          10000000u /* a busy stream is looked at no later than this */
#define UNSEEN         2000000u  /* between two looks gates may have been closed */
#define SAMPLE_EVERY   5000000u  /* one launch is measured, whatever is known of it; */
#define SAMPLE_WITHIN  20000000u /* then a short one, too */
#define LATE           1000000u  /* beyond twice what was predicted, and nobody else at work */
#define CONTENDED_FOR  1000000000u
#define WAITED_FOR     10000000000u
#define FORMER_FOR     1000000000u /* how long a launch may go on with the binding it has read */
#define SETTLE_AGAIN   1000000000u /* the driver did not take its pages */

static struct {
	bool started;
	_Atomic int stopping;
	_Atomic uint32_t epoch; /* odd: the worker may be in the driver */
	_Atomic int paused;
	_Atomic uint32_t wakes; /* futex */
	_Atomic int asleep;
	_Atomic pid_t thread;
} worker;

void worker_wake(void)
{
	atomic_fetch_add(&worker.wakes, 1);
	if (!atomic_load(&worker.asleep))
		return;
	syscall(SYS_futex, &worker.wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

uint32_t worker_visit(void)
{
	return atomic_load(&worker.epoch);
}

bool worker_left(uint32_t visit)
{
	return !(visit & 1) || atomic_load(&worker.epoch) != visit;
}

void worker_grace(void)
{
	uint32_t visit = worker_visit();

	if (worker_left(visit) || atomic_load(&worker.thread) == gettid())
		return;
	while (!worker_left(visit))
		sched_yield();
}

void worker_pause(void)
{
	atomic_fetch_add(&worker.paused, 1);
	worker_grace();
}

void worker_resume(void)
{
	atomic_fetch_sub(&worker.paused, 1);
}

bool worker_stopped(void)
{
	return atomic_load(&worker.stopping) != 0;
}

void worker_forget(void)
{
	worker.started = false;
	atomic_store(&worker.epoch, 0);
	atomic_store(&worker.paused, 0);
}

/* Enters the driver for a client. False: not now. What is published before worker_grace() is seen
 * here, or worker_grace() waits for us. */
static bool enter(struct client *client)
{
	atomic_fetch_add(&worker.epoch, 1);
	if (!atomic_load(&worker.paused) && !atomic_load(&worker.stopping) &&
	    atomic_load(&client->state) == CLIENT_LIVE &&
	    real(cuCtxSetCurrent)(client->context) == CUDA_SUCCESS)
		return true;
	atomic_fetch_add(&worker.epoch, 1);
	return false;
}

static void leave(void)
{
	real(cuCtxSetCurrent)(NULL);
	atomic_fetch_add(&worker.epoch, 1);
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

	/* A marker recorded again meanwhile is a later point. */
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

/* Nothing of a broken context runs any more. */
static void all_over(struct client *client)
{
	stream_for_each (s, client) {
		struct progress issued = stream_progress(s);
		stream_completed(s, &issued);
	}
}

/* While equals contend, how far streams are that never run dry is to be seen, too. */
static void look_at_streams(struct client *client, bool contended)
{
	stream_for_each (s, client) {
		if (!stream_outstanding(s))
			continue;
		if (!look(s)) {
			all_over(client);
			return;
		}
		stream_markers_follow(s);
		if (!contended)
			continue;
		stream_markers_want(s);
		if (atomic_load(&s->marked) <= atomic_load(&s->completed))
			stream_want_marker(s);
	}
}

/* As @now, with what @next shares with the agent alone: that may be another agent. */
static struct level_binding *stay(const struct level_binding *now, const struct level_binding *next)
{
	struct level_binding *binding = malloc(sizeof(*binding));

	if (!binding)
		return NULL;
	*binding = *now;
	binding->control = next->control;
	binding->status = next->status;
	binding->number = next->number;
	return binding;
}

/* A higher level may be used only when no gate of the lower one is ahead of us any more: we would
 * wait for our own demand. So each stream gets a marker, behind which gates are of the new level.
 * A launch that still has the lower one has counted itself as begun before it read that (launch.c).
 */
static void begin_raise(struct client *client, const struct level_binding *now,
			const struct level_binding *next)
{
	struct level_binding *between = stay(now, next);

	if (!between)
		return;
	between->wait = next->wait;
	atomic_store(&client->binding, between);
	stream_for_each (s, client) {
		s->raise_mark = atomic_load(&s->begun);
		stream_want_marker(s);
	}
	client->worker.raise = next;
}

static void change(struct client *client, const struct level_binding *next, uint64_t now)
{
	client->worker.former = atomic_load(&client->binding);
	client->worker.former_until = now + FORMER_FOR;
	client->worker.raise = NULL;
	demand_move(client, next);
}

static bool raise_passed(struct client *client)
{
	stream_for_each (s, client) {
		if (atomic_load(&s->completed) < s->raise_mark)
			return false;
	}
	return true;
}

static void adopt(struct client *client, const struct level_binding *next, uint64_t time)
{
	const struct level_binding *now = atomic_load(&client->binding);
	bool raised = now && next->level > now->level;

	log_debug("client %llu: level %u, bit %u", (unsigned long long)next->number, next->level,
		  next->bit);
	if (raised && atomic_load(&client->graph_levels) & ((1u << next->level) - 1)) {
		log_info("stays at level %u: graphs with gates of that level exist", now->level);
		next = stay(now, next);
		raised = false;
	}
	if (raised)
		begin_raise(client, now, next);
	else if (next)
		change(client, next, time);
}

/* Not now; if the agent has sent another one meanwhile, never. */
static void put_off(struct client *client, struct level_binding *next, uint64_t time)
{
	struct level_binding *none = NULL;

	client->worker.settle_at = time + SETTLE_AGAIN;
	if (!atomic_compare_exchange_strong(&client->pending, &none, next))
		free(next);
}

static void settle(struct client *client, uint64_t time)
{
	struct level_binding *next =
		time < client->worker.settle_at ? NULL : atomic_exchange(&client->pending, NULL);

	if (next && client_register_pages(client, next))
		adopt(client, next, time);
	else if (next)
		put_off(client, next, time);
	if (client->worker.raise && raise_passed(client))
		change(client, client->worker.raise, time);
}

struct totals {
	uint64_t begun, completed, predicted, executed, outstanding;
};

static struct totals add_up(struct client *client)
{
	struct totals totals = {.begun = atomic_load(&client->gone_launches),
				.predicted = atomic_load(&client->gone_predicted)};

	totals.completed = totals.begun;
	totals.executed = totals.predicted;
	stream_for_each (s, client) {
		uint64_t outstanding = stream_outstanding(s);
		totals.outstanding += outstanding;
		totals.begun += atomic_load(&s->begun);
		totals.executed += atomic_load(&s->executed); /* never more than: */
		totals.predicted += atomic_load(&s->predicted);
	}
	return totals;
}

/* Counts the time with work outstanding behind closed gates, as seen at each look. */
static void account_wait(struct client *client, const struct level_binding *binding,
			 bool outstanding, uint64_t now)
{
	bool held = outstanding && gate_closed(binding);

	if (held && client->worker.held)
		client->worker.wait_time += now - client->worker.last_tick;
	if (held && !client->worker.held)
		client->worker.waits++;
	client->worker.held = held;
}

/* Gates are dense for a while after those above showed demand, or equals had work. */
static void space_gates(struct client *client, const struct level_binding *binding, uint64_t now)
{
	uint64_t closed = atomic_load(&client->gates_closed);

	if (closed != client->worker.gates_closed || gate_expected(binding))
		client->worker.contended_until = now + CONTENDED_FOR;
	client->worker.gates_closed = closed;
	atomic_store(&client->gate_interval,
		     gate_interval(binding, now < client->worker.contended_until));
}

/* What a stream's work has run since some of it was seen finished, if so many share the GPU. */
static uint64_t ran(struct stream *stream, uint64_t streams, uint64_t passed)
{
	uint64_t completed = atomic_load(&stream->completed);

	if (!stream_outstanding(stream)) {
		stream->seen = STREAM_IDLE;
		return 0;
	}
	stream->ran = completed == stream->seen ? stream->ran + passed / streams : 0;
	stream->seen = completed;
	return stream->ran;
}

/* Predicted time of what is outstanding, less what it has run in the time that passed since the
 * last tick; never 0 for something predicted, however late it is. */
static uint64_t remaining(struct client *client, uint64_t passed)
{
	uint64_t streams = 0, sum = 0;

	stream_for_each (s, client)
		streams += stream_outstanding(s) != 0;
	stream_for_each (s, client) {
		/* In this order: both only grow. */
		uint64_t executed = atomic_load(&s->executed);
		uint64_t left = atomic_load(&s->predicted) - executed;
		uint64_t done = ran(s, streams ? streams : 1, passed);
		client->worker.late |= left && done > 2 * left + LATE;
		sum += left > done ? left - done : left != 0;
	}
	return sum;
}

/* Who wants the GPU now and then must not find a long kernel that runs as it is each time. */
static void note_demand(struct client *client, const struct level_binding *binding, uint64_t now)
{
	if (gate_demanded(binding) || gate_urgent(binding))
		client->worker.waited_until = now + WAITED_FOR;
	if (gate_closed(binding))
		client->worker.held_until = now + WAITED_FOR;
	atomic_store(&client->yields, priority_yields(client, binding));
	atomic_store(&client->waiting, now < client->worker.waited_until ? WAITING_URGENT
				       : now < client->worker.held_until ? WAITING_SAME_LEVEL
									 : WAITING_NOBODY);
}

/* Whose patience it is are those above: equals who are not to wait for kernels have none. */
static void note_patience(struct client *client, const struct level_binding *binding, uint64_t now)
{
	uint32_t patience = atomic_load(&control_page(binding)->max_blocking_time);

	if (gate_urgent(binding))
		client->worker.urgent_until = now + WAITED_FOR;
	atomic_store(&client->max_blocking_time, now < client->worker.urgent_until ? 0 : patience);
}

/* Whether its launches can be told apart by their priorities. */
static void note_order(struct client *client, uint64_t now)
{
	if (atomic_exchange(&client->unordered, 0))
		client->worker.ordered_at = now + WAITED_FOR;
	client->worker.ordered = priority_by_length(client) && now >= client->worker.ordered_at;
}

/* Only its way past gates is left of what is outstanding, and they are closed, or soon may be. */
static bool is_done(struct client *client, const struct level_binding *binding)
{
	bool outstanding = false;

	if (!gate_expected(binding))
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
	       (client->worker.ordered ? WEIR_STATUS_ORDERED : 0) |
	       (is_done(client, binding) ? WEIR_STATUS_DONE : 0);
}

static void write_status(struct client *client, const struct level_binding *binding,
			 const struct totals *totals, uint64_t passed)
{
	struct weir_status_page *status = status_page(binding);

	atomic_store(&status->launches, totals->begun);
	atomic_store(&status->outstanding, totals->outstanding);
	/* A launch has begun meanwhile, or the next is expected at once. */
	if (!totals->outstanding && atomic_load(&client->demanding) == DEMAND_SHOWN)
		atomic_store(&status->outstanding, 1);
	atomic_store(&status->gpu_time, totals->predicted);
	atomic_store(&status->remaining, remaining(client, passed));
	/* A stream that goes while all are added up is missed for once. */
	if (totals->executed > client->worker.executed)
		client->worker.executed = totals->executed;
	atomic_store(&status->executed, client->worker.executed);
	atomic_store(&status->starts, atomic_load(&client->starts));
	atomic_store(&status->starts_late, client->worker.starts_late);
	atomic_store(&status->predictions, client->worker.predictions);
	atomic_store(&status->prediction_error, client->worker.prediction_error);
	if (client->worker.eviction_cost > 0)
		atomic_store(&status->eviction_cost,
			     (uint64_t)(client->worker.eviction_cost / client->worker.run_time));
	atomic_store(&status->busy_period, burst_told(&client->burst));
	atomic_store(&status->gates, atomic_load(&client->gates));
	atomic_store(&status->gates_closed, atomic_load(&client->gates_closed));
	atomic_store(&status->waits, client->worker.waits);
	atomic_store(&status->wait_time, client->worker.wait_time);
	uint64_t evictions = 0;
	for (size_t i = 0; i < WEIR_STATUS_FORMS; i++) {
		evictions += client->worker.form_evictions[i];
		atomic_store(&status->form_launches[i], atomic_load(&client->form_launches[i]));
		atomic_store(&status->form_evictions[i], client->worker.form_evictions[i]);
	}
	atomic_store(&status->evictions, evictions);
	atomic_store(&status->comparing, tuning_count(client));
	atomic_store(&status->level, binding->level);
	atomic_store(&status->flags, status_flags(client, binding));
}

/* The program's own calls may keep ours waiting for as long as gates are closed. */
static bool was_held(const struct client *client, const struct level_binding *binding, uint64_t now)
{
	return gate_closed(binding) ||
	       (gate_expected(binding) && now - client->worker.last_look > UNSEEN);
}

static void read_samples(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	sampler_read(&client->sampler,
		     &(struct sample_reader){.ended = learn_sample,
					     .runs = learn_runs,
					     .data = client,
					     .now = now,
					     .held = binding && was_held(client, binding, now)});
}

/* Below the top level it matters what kernels take today. */
static void want_samples(struct client *client, const struct level_binding *binding, uint64_t now)
{
	bool late = client->worker.late && !gate_expected(binding);
	int due = SAMPLE_NOT_DUE;

	if (!binding->wait || now - client->worker.sampled_at < SAMPLE_EVERY)
		return;
	client->worker.sampled_at = now;
	client->worker.late = false;
	if (atomic_compare_exchange_strong(&client->sampler.due, &due, SAMPLE_DUE))
		client->worker.due_at = now;
	else if (due != SAMPLE_DOUBTED && now - client->worker.due_at >= SAMPLE_WITHIN)
		atomic_store(&client->sampler.due, SAMPLE_OVERDUE);
	if (late)
		atomic_store(&client->sampler.due, SAMPLE_DOUBTED);
}

/* What may be done with the driver, whatever it is that calls for it. */
static void drive(struct client *client, bool contended, uint64_t now)
{
	settle(client, now);
	read_samples(client, now);
	look_at_streams(client, contended);
	function_watch(client);
	if (function_pending(client))
		function_work(client);
	if (tuning_pending(client))
		tuning_work(client);
	if (preempt_pending(client))
		preempt_work(client);
}

/* What is seen of a client before the driver is asked anything. */
struct look {
	struct totals totals;
	bool moved;     /* work was begun since the last look */
	bool contended; /* gates are closed, or are about to be */
	bool settling;  /* its binding is about to change */
	bool samples, flying, forms;
};

static struct look look_at(struct client *client, const struct level_binding *binding)
{
	struct totals totals = add_up(client);
	bool contended = binding && gate_expected(binding);
	bool flying = preempt_look(client); /* which may leave work for preempt_pending() */

	return (struct look){
		.totals = totals,
		.moved = totals.begun != client->worker.last_begun,
		.contended = contended,
		.settling = atomic_load(&client->pending) || client->worker.raise,
		.samples = atomic_load(&client->sampler.armed) != 0,
		.flying = flying,
		.forms = function_pending(client) || tuning_pending(client) ||
			 preempt_pending(client),
	};
}

/* Each call keeps the program's own for a moment. So what samples say is asked for at once only
 * where somebody may wait for this client. */
static bool wants_driver(const struct client *client, const struct level_binding *binding,
			 const struct look *look, uint64_t now)
{
	bool stale = now - client->worker.last_look > STALE;
	bool soon = stale || look->contended || look->flying ||
		    atomic_load(&client->waiting) != WAITING_NOBODY ||
		    (binding && atomic_load(&control_page(binding)->latency_slo));

	return (look->samples && soon) || look->settling || look->forms ||
	       (look->totals.outstanding && (!look->moved || stale || look->contended));
}

static void scrub_former(struct client *client, uint64_t now)
{
	if (!client->worker.former)
		return;
	demand_scrub(client, client->worker.former);
	if (now > client->worker.former_until)
		client->worker.former = NULL;
}

/* How long until the next look. */
static uint64_t pace(const struct client *client, const struct level_binding *binding,
		     const struct look *look, bool demanding)
{
	if (look->samples && atomic_load(&control_page(binding)->latency_slo))
		return TICK_STALLED;
	if (look->contended && look->totals.outstanding)
		return look->moved || !binding->level ? TICK_CONTENDED : TICK_STALLED;
	if (!look->totals.outstanding && binding->level && atomic_load(&client->demanding))
		return TICK_LINGERING;
	if (look->moved || look->flying || look->forms || client->worker.raise ||
	    client->worker.former)
		return TICK_BUSY;
	if (look->totals.outstanding || demanding || atomic_load(&client->demanding))
		return binding->level ? TICK_STALLED : TICK_BUSY;
	return TICK_IDLE;
}

/* Looks after one client; how long until the next look. */
static uint64_t tick(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding && !atomic_load(&client->pending))
		return TICK_IDLE;

	struct look look = look_at(client, binding);
	if (wants_driver(client, binding, &look, now) && enter(client)) {
		drive(client, look.contended, now);
		leave();
		client->worker.last_look = now;
		look.totals = add_up(client);
	}
	binding = atomic_load(&client->binding);
	if (!binding)
		return TICK_BUSY;
	scrub_former(client, now);
	bool demanding = demand_expire(client, now);
	hold_expire(binding, now);
	space_gates(client, binding, now);
	note_demand(client, binding, now);
	note_order(client, now);
	note_patience(client, binding, now);
	start_look(client, binding, now);
	want_samples(client, binding, now);
	account_wait(client, binding, look.totals.outstanding != 0, now);
	/* What is held does not run. */
	write_status(client, binding, &look.totals,
		     client->worker.held ? 0 : now - client->worker.last_tick);

	client->worker.last_begun = look.totals.begun;
	client->worker.last_tick = now;
	return pace(client, binding, &look, demanding);
}

/* @wakes: as it was before all was looked at; whoever woke us since has seen us awake. */
static void doze(uint64_t ns, bool deep, uint32_t wakes)
{
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	if (!deep) {
		nanosleep(&time, NULL);
		return;
	}
	atomic_store(&worker.asleep, 1);
	syscall(SYS_futex, &worker.wakes, FUTEX_WAIT_PRIVATE, wakes, &time, NULL, 0);
	atomic_store(&worker.asleep, 0);
}

static void *run(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint64_t active = client_now();

	(void)unused;
	thread_name("weir-worker");
	atomic_store(&worker.thread, gettid());
	/* Our queries are nobody's business: a capture in another thread must not fail for them. */
	real(cuThreadExchangeStreamCaptureMode)(&mode);
	while (!atomic_load(&worker.stopping)) {
		uint32_t wakes = atomic_load(&worker.wakes);
		uint64_t now = client_now(), next = TICK_IDLE;
		for (size_t i = 0; i < CLIENTS_MAX; i++) {
			if (atomic_load(&clients[i].state) != CLIENT_LIVE)
				continue;
			uint64_t wanted = tick(&clients[i], now);
			next = wanted < next ? wanted : next;
		}
		predict_work(now);
		if (next < TICK_IDLE)
			active = now;
		bool asleep = next == TICK_IDLE && now - active > ASLEEP_AFTER;
		doze(asleep ? TICK_ASLEEP : next, next == TICK_IDLE, wakes);
	}
	return NULL;
}

/* The driver takes itself down at exit: no call of ours may meet that. */
static void stop(void)
{
	atomic_store(&worker.stopping, 1);
	worker_grace();
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (atomic_load(&clients[i].state) == CLIENT_LIVE)
			demand_drop(&clients[i]);
	}
}

int worker_start(void)
{
	int r = worker.started ? 0 : thread_start(run, "weir-worker");

	if (r == 0 && !worker.started)
		atexit(stop);
	worker.started |= r == 0;
	return r;
}
