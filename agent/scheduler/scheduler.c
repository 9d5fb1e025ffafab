#include "scheduler/scheduler.h"

#include <stdio.h>

#include "scheduler/charging.h"
#include "scheduler/compute-limit.h"
#include "scheduler/contention.h"
#include "scheduler/first-turn.h"
#include "scheduler/min-rates.h"
#include "scheduler/preemption.h"
#include "scheduler/siblings.h"
#include "scheduler/slice-shares.h"
#include "scheduler/tenants.h"
#include "scheduler/workers.h"
#include "scheduler/yields.h"

#include "weir/base.h"

static bool is_held_by_hand(const struct client *client)
{
	return client->held_until != 0;
}

/* All its work is done but for passing gates. */
static bool is_done(const struct client *client)
{
	return atomic_load(&client->pages.status->flags) & WEIR_STATUS_DONE;
}

/* Without the hardware gates do what they can for a compute limit, or a minimum rate. */
static bool is_kept_out_by_gates(const struct client *client)
{
	return client_is_out(client) && !preemption_works(client);
}

/* Its work takes no turns, so other clients are not held for it. */
static bool is_no_turn(const struct client *client)
{
	return is_held_by_hand(client) || client_is_out(client) || min_rates_rule(client) ||
	       gpu_slices(client->gpu, client->level);
}

static bool waits_ahead(const struct client *client, uint64_t now)
{
	return !is_no_turn(client) && first_turn_waits(client, now);
}

/* A client without outstanding work is never held, but its gates may be closed ahead. */
static void write_hold(struct client *client, uint64_t now)
{
	struct weir_control_page *control = client->pages.control;
	bool done = is_done(client);
	bool held = (client->entry.held || is_held_by_hand(client)) && !done;
	client->closed_ahead = waits_ahead(client, now);
	bool closed = held || (is_kept_out_by_gates(client) && !done) || client->closed_ahead;

	client_count_hold(client, held, now);
	preemption_hold(client, held, now);
	atomic_store(&control->hold_until, closed ? now + SCHEDULER_HOLD_NS : 0);
	atomic_store(&control->hold, closed);
	client->was_out = client_is_out(client);
}

static void hold(struct run_queues *queues, struct run_queue_entry *entry, bool held)
{
	struct client *client = container_of(entry, struct client, entry);

	(void)queues;
	(void)held; /* the entry says so */
	write_hold(client, loop_now());
}

/* Those whose turn it is, or that need not wait any more. */
static void open_gates(struct gpu *gpu, uint64_t now)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->closed_ahead && !waits_ahead(client, now))
			write_hold(client, now);
}

static const struct policy *policy_of(const struct scheduler *scheduler, const struct gpu *gpu)
{
	return gpu->policy ? gpu->policy : scheduler->policy;
}

static const struct policy_settings *settings_of(const struct scheduler *scheduler,
						 const struct gpu *gpu)
{
	return gpu->policy ? &gpu->settings : &scheduler->settings;
}

static bool may_contend_on_level(const struct client *client)
{
	const struct gpu *gpu = client->gpu;

	return !gpu->queues.policy->never_holds && !gpu_slices(gpu, client->level) &&
	       gpu->n_level[client->level] > 1;
}

/* All clients of a container on a GPU divide its share. */
static uint32_t weight_of(const struct client *client)
{
	const struct client *other;
	uint32_t n = 0;

	for (other = client->tenant->clients; other; other = other->tenant_next)
		n += other->gpu == client->gpu;
	uint32_t weight = client->tenant->share * POLICY_WEIGHT_ONE / (n ? n : 1);
	return weight ? weight : 1;
}

/* ns that an eviction costs, as the client reports; 0: no more than any switch. The value is
 * limited, because it lengthens the rounds of all. A change of less than an eighth is ignored. */
static uint64_t cost_of(const struct client *client)
{
	uint64_t least = client->gpu->queues.settings.cost, before = client->entry.cost;
	uint64_t reported = smaller(atomic_load(&client->pages.status->eviction_cost),
				    SCHEDULER_COSTLY * least);

	if (reported <= least)
		return 0;
	return reported > before - before / 8 && reported < before + before / 8 ? before : reported;
}

/* It has an objective, and had no more work at a time lately than it gets done in one slice. */
static bool is_quick(const struct client *client, uint64_t now)
{
	return client->tenant->slo && preemption_works(client) && now >= client->much_until;
}

static struct run_queue_entry describe(const struct client *client, uint64_t now)
{
	return (struct run_queue_entry){.level = client->level,
					.group = (uintptr_t)client->tenant,
					.weight = weight_of(client),
					.slo = client->tenant->slo,
					.cost = cost_of(client),
					.lag = preemption_works(client) ? PREEMPTION_LAG_NS : 0,
					.quick = is_quick(client, now)};
}

static bool differs(const struct run_queue_entry *a, const struct run_queue_entry *b)
{
	return a->level != b->level || a->weight != b->weight || a->slo != b->slo ||
	       a->cost != b->cost || a->lag != b->lag || a->quick != b->quick;
}

static void refresh(struct gpu *gpu, uint64_t now)
{
	slice_shares_refresh(gpu);
	compute_limit_refresh(gpu, now);
	min_rates_refresh(gpu, now);
	contention_find_urgent(gpu);
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct run_queue_entry news = describe(client, now);
		struct weir_control_page *control = client->pages.control;
		if (differs(&client->entry, &news))
			run_queues_change(&gpu->queues, &client->entry, &news, now);
		/* Gates look at the hold word only where this is set. */
		client_set_flag(
			client, WEIR_CONTROL_HOLDABLE,
			may_contend_on_level(client) || is_held_by_hand(client) ||
				min_rates_hold(client) ||
				(client->tenant->compute_limit && !preemption_works(client)));
		atomic_store(&control->share, client->tenant->share);
		atomic_store(&control->latency_slo, client->tenant->slo);
		client->yield = client->tenant->yield;
		yields_tell(client);
	}
	gpu_tell_spatial(gpu);
	preemption_set_slices(gpu);
	open_gates(gpu, now);
}

/* ns of work that it has left: as it reported last, less what it ran since then. */
static uint64_t left(struct client *client, uint64_t reported)
{
	bool news = reported != client->reported_remaining || !client->entry.active;

	client->reported_remaining = reported;
	/* 0: not predicted. */
	if (!reported)
		return client->gpu->queues.settings.quantum;
	if (news)
		return reported;
	return client->entry.remaining ? client->entry.remaining : 1;
}

/* What it reports changes now and then what the policy knows of it, and its slice. */
static void follow_reports(struct client *client, uint64_t remaining, uint64_t now)
{
	bool quick = client->entry.quick;

	if (remaining > POLICY_QUICK)
		client->much_until = now + SCHEDULER_LONG_FOR;
	if (cost_of(client) == client->entry.cost && is_quick(client, now) == quick)
		return;
	struct run_queue_entry news = describe(client, now);
	run_queues_change(&client->gpu->queues, &client->entry, &news, now);
	if (client->entry.quick != quick)
		preemption_set_slices(client->gpu);
}

/* True: it has work. */
static bool look_at(struct scheduler *scheduler, struct client *client, uint64_t now)
{
	const struct weir_status_page *status = client->pages.status;
	uint64_t outstanding = atomic_load(&status->outstanding);
	uint64_t remaining = atomic_load(&status->remaining);

	if (scheduler->record.gpu == client->gpu)
		record_launches(&scheduler->record, &client->recorded,
				atomic_load(&status->gpu_time), now);
	if (client->gpu->queues.policy->plan)
		workers_report(client);
	follow_reports(client, remaining, now);
	if (is_held_by_hand(client) && now >= client->held_until) {
		client->held_until = 0;
		write_hold(client, now);
	}
	run_queues_work(&client->gpu->queues, &client->entry, is_no_turn(client) ? 0 : outstanding,
			outstanding ? left(client, remaining) : 0, now);
	if (outstanding && remaining / outstanding >= SCHEDULER_LONG_NS)
		client->long_until = now + SCHEDULER_LONG_FOR;
	/* A client clears its hold word when it has waited too long for the agent. */
	if (client->entry.held || is_held_by_hand(client) || client_is_out(client) ||
	    client->was_out || waits_ahead(client, now))
		write_hold(client, now);
	return outstanding > 0;
}

uint64_t scheduler_look(struct scheduler *scheduler, struct gpu *gpu, uint64_t now)
{
	uint64_t passed = now - gpu->looked, next;
	bool may_contend = scheduler->record.gpu == gpu, busy = may_contend;
	bool concurrent[WEIR_LEVELS] = {true, true, true, true}; /* all clients say so */

	gpu->looked = now;
	charging_look(gpu, passed, now);
	uint64_t timed = compute_limit_look(gpu, now);
	timed = smaller(timed, min_rates_look(gpu, now));
	timed = smaller(timed, yields_look(gpu, now));
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		bool contends = may_contend_on_level(client) || is_held_by_hand(client);
		busy |= look_at(scheduler, client, now) && contends;
		may_contend |= contends;
		timed = smaller(timed, preemption_due(client));
		concurrent[client->level] &= client_is_concurrent(client);
	}
	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		gpu->queues.levels[level].all_concurrent = concurrent[level];
	next = run_queues_decide(&gpu->queues, now);
	open_gates(gpu, now);
	slice_shares_look(gpu, now);
	if (siblings_look(gpu, now))
		preemption_set_slices(gpu);
	contention_tell(gpu, now);
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		workers_tell(client, may_contend_on_level(client));
	compute_limit_note(gpu);
	if (!may_contend)
		return timed;
	uint64_t most = looks_next(&scheduler->looks, gpu, busy, passed, now);
	return smaller(smaller(next, timed), now + most);
}

static void look(struct scheduler *scheduler)
{
	uint64_t now = loop_now(), next = POLICY_NEVER;

	scheduler->looks.n_clients = 0;
	for (const struct gpu *gpu = *scheduler->gpus; gpu; gpu = gpu->hh.next)
		for (uint8_t level = 0; level < WEIR_LEVELS; level++)
			scheduler->looks.n_clients += gpu->n_level[level];
	for (struct gpu *gpu = *scheduler->gpus; gpu; gpu = gpu->hh.next) {
		uint64_t wanted = gpu->clients ? scheduler_look(scheduler, gpu, now) : POLICY_NEVER;
		next = wanted < next ? wanted : next;
	}
	scheduler->due = next == POLICY_NEVER ? 0 : next;
	if (next == POLICY_NEVER)
		loop_timer_clear(&scheduler->timer);
	else
		loop_timer_set(&scheduler->timer, next - now, 0);
}

void scheduler_hear(struct scheduler *scheduler, const struct client *client)
{
	if (compute_limit_listens(client) || min_rates_listen(client) ||
	    contention_polls_fast(client->gpu, client->level))
		look(scheduler);
}

static void look_due(struct loop_timer *timer)
{
	struct scheduler *scheduler = container_of(timer, struct scheduler, timer);

	scheduler->timers.n++;
	scheduler->timers.late += loop_now() - scheduler->due;
	look(scheduler);
}

int scheduler_init(struct scheduler *scheduler, struct loop *loop, const struct policy *policy,
		   const struct policy_settings *settings, struct gpu **gpus)
{
	*scheduler = (struct scheduler){.policy = policy, .settings = *settings, .gpus = gpus};
	return loop_timer_init(&scheduler->timer, loop, look_due);
}

void scheduler_deinit(struct scheduler *scheduler)
{
	free(record_end(&scheduler->record, loop_now()));
	loop_timer_deinit(&scheduler->timer);
}

/* Run queues without clients. Counters go on. */
static void begin(struct scheduler *scheduler, struct gpu *gpu)
{
	struct run_queues before = gpu->queues;

	run_queues_init(&gpu->queues, policy_of(scheduler, gpu), settings_of(scheduler, gpu), hold);
	gpu->queues.memory = &scheduler->memory;
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		gpu->queues.levels[level].switches = before.levels[level].switches;
		gpu->queues.levels[level].bounds = true;
		gpu->refunds[level] = 0;
	}
}

static void start_over(struct scheduler *scheduler, struct gpu *gpu)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		run_queues_work(&gpu->queues, &client->entry, 0, 0, loop_now());
	begin(scheduler, gpu);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		run_queues_add(&gpu->queues, &client->entry);
	refresh(gpu, loop_now());
}

void scheduler_set_policy(struct scheduler *scheduler, const struct policy *policy)
{
	scheduler->policy = scheduler->commanded = policy;
	for (struct gpu *gpu = *scheduler->gpus; gpu; gpu = gpu->hh.next) {
		if (gpu->policy)
			gpu->policy = policy;
		start_over(scheduler, gpu);
	}
	look(scheduler);
}

void scheduler_take(struct scheduler *scheduler, const struct policy *policy,
		    const struct policy_settings *settings)
{
	scheduler->policy = policy;
	scheduler->settings = *settings;
	scheduler->commanded = NULL;
}

static bool same_settings(const struct policy_settings *a, const struct policy_settings *b)
{
	return a->aging == b->aging && a->quantum == b->quantum &&
	       a->min_quantum == b->min_quantum && a->cost == b->cost &&
	       a->min_timer == b->min_timer && a->late == b->late &&
	       a->max_overhead == b->max_overhead;
}

void scheduler_configure(struct scheduler *scheduler, struct gpu *gpu, const struct policy *policy,
			 const struct policy_settings *settings)
{
	const struct policy *wanted = scheduler->commanded ? scheduler->commanded : policy;
	bool same = wanted == policy_of(scheduler, gpu) &&
		    same_settings(settings, settings_of(scheduler, gpu));

	gpu->policy = wanted;
	gpu->settings = *settings;
	if (same)
		return;
	start_over(scheduler, gpu);
	look(scheduler);
}

static void record(struct scheduler *scheduler, struct client *client)
{
	const struct tenant *tenant = client->tenant;
	struct trace_client traits = {.level = client->level,
				      .share = tenant->share,
				      .slo = tenant->slo,
				      .evict = client->entry.cost};

	if (scheduler->record.gpu != client->gpu)
		return;
	snprintf(traits.name, sizeof(traits.name), "%.40s.%llu",
		 *tenant->pod ? tenant->pod : client->command, (unsigned long long)client->number);
	record_add(&scheduler->record, &client->recorded, &traits);
}

void scheduler_add(struct scheduler *scheduler, struct client *client)
{
	struct gpu *gpu = client->gpu;

	if (!gpu->queues.policy)
		begin(scheduler, gpu);
	gpu->scheduler = scheduler;
	/* It is not known yet how much work it has. */
	client->much_until = loop_now() + SCHEDULER_LONG_FOR;
	client->entry = describe(client, loop_now());
	run_queues_add(&gpu->queues, &client->entry);
	record(scheduler, client);
	refresh(gpu, loop_now());
	look(scheduler);
}

void scheduler_remove(struct client *client)
{
	if (client->gpu->queues.policy)
		run_queues_remove(&client->gpu->queues, &client->entry, loop_now());
}

void scheduler_change(struct scheduler *scheduler, struct gpu *gpu)
{
	refresh(gpu, loop_now());
	look(scheduler);
}

void scheduler_hold(struct scheduler *scheduler, struct client *client, uint64_t ns)
{
	uint64_t now = loop_now();

	client->held_until = ns ? now + ns : 0;
	write_hold(client, now);
	refresh(client->gpu, now);
	look(scheduler);
}

uint64_t scheduler_hold_left(const struct client *client, uint64_t now)
{
	const struct weir_control_page *control = client->pages.control;
	uint64_t until = client->held_until;

	if (!until)
		until = client->entry.held ? atomic_load(&control->hold_until) : 0;
	return until > now ? until - now : 0;
}

int scheduler_record(struct scheduler *scheduler, const struct gpu *gpu)
{
	int r = record_begin(&scheduler->record, gpu, gpu->id, loop_now());

	if (r < 0)
		return r;
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		client->recorded.gpu_time = atomic_load(&client->pages.status->gpu_time);
		record(scheduler, client);
	}
	look(scheduler);
	return 0;
}
