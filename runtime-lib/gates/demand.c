#include "gates/demand.h"

#include "client/link.h"
#include "client/stream-level.h"
#include "client/worker.h"
#include "gates/need-choice.h"
#include "gates/start.h"

/* Launches that follow each other this closely are one busy period. */
#define LINGER_MAX (100 * NS_PER_US) /* ns */

/* The worker is hurried no more often than that: it takes the caller some us, and each of the
 * worker's questions keeps the driver from the program. */
#define HURRY_EVERY (500 * NS_PER_US)

/* For this long the client that came first is ahead of those that come while it is at work. */
#define FIRST_MAX (20 * NS_PER_MS) /* ns */

struct demand demand_table[CLIENTS_MAX];

/* The GPU time that lower levels have lost by speculation. */
static void count_speculation(const struct level_binding *binding, uint64_t since, uint64_t now)
{
	if (binding && now > since)
		atomic_fetch_add(&status_page(binding)->speculative_time, now - since);
}

/* A launch came at @now, while no demand was shown, or speculative demand. */
static void speculation_came_true(struct client *client, const struct level_binding *binding,
				  uint64_t now)
{
	struct demand *demand = demand_of(client);
	uint64_t since = atomic_exchange(&demand->speculation.since, 0);
	uint64_t hinted = atomic_exchange(&demand->speculation.hinted, 0);

	if ((since || hinted) && atomic_load(&demand->shown) == DEMAND_SPECULATIVE)
		count_speculation(binding, atomic_load(&demand->speculation.shown), now);
	if (since)
		speculation_learn(&demand->speculation, now > since ? now - since : 0);
}

static void speculation_missed(struct client *client, const struct level_binding *binding,
			       uint64_t now)
{
	struct speculation *speculation = &demand_of(client)->speculation;
	uint64_t since = atomic_exchange(&speculation->since, 0);
	uint64_t hinted = atomic_exchange(&speculation->hinted, 0);

	if (!since && !hinted)
		return;
	if (!hinted)
		speculation_learn(speculation, UINT64_MAX);
	count_speculation(binding, atomic_load(&speculation->shown), now);
	atomic_fetch_add(&status_page(binding)->speculative_misses, 1);
}

/* The client's bit is in the words below the lowest level at which this process has work
 * outstanding on the GPU, in any context. A launch at a lower level counts itself first, and takes
 * the bits from the other words then: either that comes after we set ours, or we see the launch. */
static void fit(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	unsigned lowest;

	if (!atomic_load(&streams_have_levels) || !binding || binding->bit == WEIR_BIT_SHARED ||
	    binding_flag(binding, WEIR_CONTROL_LEAVES))
		return;
	do {
		lowest = streams_lowest(client, binding->level);
		pages_set_below(binding, lowest, true);
		pages_take_from(binding, lowest);
	} while (streams_lowest(client, binding->level) < lowest);
}

static void tell(const struct level_binding *binding, uint64_t outstanding, uint64_t remaining)
{
	struct weir_status_page *status = status_page(binding);

	store_relaxed(&status->remaining, remaining);
	store_release(&status->outstanding, outstanding);
}

/* Counts demand time up to @now. @next: from when it goes on; 0: demand has ended. */
static void count_time(struct client *client, uint64_t now, uint64_t next)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	uint64_t since = atomic_exchange(&demand_of(client)->since, next);

	if (since && now > since && binding)
		add_relaxed(&status_page(binding)->demand_time, now - since);
}

static void learn_gap(struct client *client, uint64_t gap)
{
	uint64_t mean = atomic_load(&demand_of(client)->gap);

	atomic_store(&demand_of(client)->gap, mean ? mean - mean / 4 + gap / 4 : gap);
}

/* A launch came at @now: what is finished later is idle from then on. */
static void end_idle(struct client *client, uint64_t now)
{
	uint64_t idle = atomic_exchange(&demand_of(client)->idle_since, 0);

	if (idle && now > idle)
		learn_gap(client, now - idle);
}

void demand_goes_on(struct client *client)
{
	end_idle(client, client_now());
}

/* ns that demand stays for the next launch; 0: it is not expected soon. */
static uint64_t linger(const struct client *client)
{
	uint64_t gap = atomic_load(&demand_of(client)->gap);

	return gap < LINGER_MAX ? 2 * gap : 0;
}

static void show(struct client *client, const struct level_binding *binding, uint64_t now,
		 uint32_t sms)
{
	struct demand *demand = demand_of(client);

	busy_period_begin(&demand->busy, now);
	sms_raise(client, sms);
	store_relaxed(&demand->came_first, pages_set(client, binding));
	atomic_store(&demand->shown, DEMAND_SHOWN);
	fit(client);
}

void demand_set(struct client *client, const struct level_binding *binding, uint64_t predicted,
		uint32_t sms)
{
	struct demand *demand = demand_of(client);
	uint64_t now = client_now(), none = 0;

	end_idle(client, now);
	speculation_came_true(client, binding, now);
	if (!atomic_load(&demand->since))
		atomic_compare_exchange_strong(&demand->since, &none, now);
	show(client, binding, now, sms);
	/* After the flag: the worker, which may be telling that there is no work, checks it then.
	 */
	tell(binding, 1, predicted);
	if (binding_flag(binding, WEIR_CONTROL_TELL))
		link_tell_work(client, now);
	/* What is finished of it must be reported soon. */
	if (binding_flag(binding, WEIR_CONTROL_RATED))
		worker_wake();
}

/* If another thread clears the bits meanwhile, it sees our launch and sets them for the whole GPU.
 */
void demand_grow(struct client *client, const struct level_binding *binding, uint32_t sms)
{
	sms_raise(client, sms);
	pages_set(client, binding);
	fit(client);
}

static bool busy(struct client *client)
{
	stream_for_each (s, client) {
		if (stream_outstanding(s))
			return true;
	}
	return false;
}

/* Clears the bits if they are shown as @shown says. */
static bool take_back(struct client *client, const struct level_binding *binding, int shown,
		      uint64_t gap)
{
	if (!atomic_compare_exchange_strong(&demand_of(client)->shown, &shown, DEMAND_NONE))
		return false;
	pages_withdraw(client, binding, gap);
	return true;
}

/* A launch that began while the bits were cleared may have seen them set. Sets them again, even if
 * another thread does the same. Which SMs it needs is not known. */
static void set_again(struct client *client, const struct level_binding *binding)
{
	if (!busy(client))
		return;
	show(client, binding, client_now(), SMS_WHOLE);
	tell(binding, 1, 0);
}

/* Sets the bits for demand that `shown` already tells. Another thread that saw it, and that nothing
 * is outstanding, may have cleared the bits before we set them; nobody would clear them again. */
static void set_noted(struct client *client, const struct level_binding *binding)
{
	pages_set(client, binding);
	fit(client);
	if (atomic_load(&demand_of(client)->shown))
		return;
	pages_withdraw(client, binding, 0);
	set_again(client, binding);
}

/* The agent fills new pages in as if all demand were for the whole GPU. So it does with the demand
 * of a client that has left the GPU to others. */
static void unset_whole(struct client *client, const struct level_binding *binding)
{
	if (!sms_are_whole(client))
		pages_unset_whole(binding);
	/* A launch that needs it may have set the bits meanwhile. */
	if (sms_are_whole(client))
		set_noted(client, binding);
}

bool demand_set_speculatively(struct client *client, const struct level_binding *binding)
{
	int none = DEMAND_NONE;

	if (!atomic_compare_exchange_strong(&demand_of(client)->shown, &none, DEMAND_SPECULATIVE))
		return false;
	sms_guess(client);
	set_noted(client, binding);
	return true;
}

static void clear(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding ||
	    !take_back(client, binding, DEMAND_SHOWN, atomic_load(&demand_of(client)->gap)))
		return;
	count_time(client, client_now(), 0);
	need_learn_period(client, sms_last_way(client) == NEED_WHOLE,
			  busy_period_end(&demand_of(client)->busy,
					  atomic_load(&demand_of(client)->idle_since)));
	start_done(client, binding);
	tell(binding, 0, 0);
	set_again(client, binding);
	if (sms_stay(client, client_now()))
		worker_wake();
}

static void clear_speculative(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding || !take_back(client, binding, DEMAND_SPECULATIVE, 0))
		return;
	speculation_missed(client, binding, now);
	set_again(client, binding);
}

void demand_lower(const struct client *client, unsigned level)
{
	client_for_each (other) {
		const struct level_binding *binding = atomic_load(&other->binding);
		if (!binding || other->device != client->device)
			continue;
		if (binding->bit != WEIR_BIT_SHARED)
			pages_take_from(binding, level);
		/* The agent sets the bit that clients share by this. */
		else if (load_relaxed(&status_page(binding)->level) > level)
			atomic_store(&status_page(binding)->level, level);
	}
}

/* Work is outstanding, but maybe no longer at a lower level. */
static void refit(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!atomic_load(&streams_have_levels) || !binding)
		return;
	fit(client);
	if (atomic_load(&demand_of(client)->shown))
		return;
	pages_withdraw(client, binding, 0);
	set_again(client, binding);
}

static void settle(struct client *client, bool lingers)
{
	if (atomic_load(&demand_of(client)->shown) != DEMAND_SHOWN)
		return;
	if (busy(client)) {
		refit(client);
		return;
	}
	uint64_t none = 0;
	atomic_compare_exchange_strong(&demand_of(client)->idle_since, &none, client_now());
	if (lingers && linger(client))
		worker_wake();
	else
		clear(client);
}

void demand_settle(struct client *client)
{
	settle(client, true);
}

void demand_end(struct client *client)
{
	settle(client, false);
}

/* Lower-level clients share the GPU, or same-level ones have work. */
static bool is_waited_for(const struct level_binding *binding)
{
	return binding &&
	       (load_relaxed(&control_page(binding)->below) || binding_contended(binding));
}

void demand_some_finished(struct client *client)
{
	struct demand *demand = demand_of(client);
	uint64_t now = client_now();

	if (atomic_load(&demand->shown) != DEMAND_SHOWN || linger(client) ||
	    now < load_relaxed(&demand->hurried) + HURRY_EVERY ||
	    !is_waited_for(atomic_load(&client->binding))) {
		worker_wake();
		return;
	}
	store_relaxed(&demand->hurried, now);
	worker_hurry(client);
}

/* True: bits were set, and may still be. Between two launches a look may find nothing outstanding:
 * two looks must, or one after a call that waited. */
static bool expire(struct client *client, uint64_t now, bool hurried)
{
	struct demand *demand = demand_of(client);
	int shown = atomic_load(&demand->shown);

	if (shown == DEMAND_NONE)
		return false;
	if (shown == DEMAND_SPECULATIVE) {
		if (!busy(client) && now >= atomic_load(&demand->speculation.until))
			clear_speculative(client, now);
		return true;
	}
	count_time(client, now, now);
	if (busy(client)) {
		refit(client);
		busy_period_goes_on(&demand->busy, now);
		if (busy_period_lasts(&demand->busy, now) > FIRST_MAX)
			atomic_store(&demand->came_first, 0);
		return true;
	}
	uint64_t idle = atomic_load(&demand->idle_since);
	if (!idle)
		atomic_store(&demand->idle_since, now);
	if ((!idle && !hurried) || now - (idle ? idle : now) < linger(client))
		return true;
	clear(client);
	return atomic_load(&demand->shown);
}

/* The next request may be short: its work is reported while it is done, and not in one lump with
 * that of later ones. */
static bool is_lately(const struct client *client, const struct tick *tick)
{
	uint64_t idle = atomic_load(&demand_of(client)->idle_since);

	return binding_flag(tick->binding, WEIR_CONTROL_RATED) && idle &&
	       tick->now < idle + DEMAND_LATELY;
}

/* Blocks of a kernel that has many may wait for others of it, which find no room on a part of the
 * SMs until long kernels below end. */
static void end_part(struct client *client, const struct tick *tick)
{
	if (!load_relaxed(&need_choices_of(client)->many) || sms_are_whole(client) ||
	    busy_period_lasts(&demand_of(client)->busy, tick->now) < NEED_PERIOD_MAX)
		return;
	sms_raise(client, SMS_WHOLE);
	set_noted(client, tick->binding);
}

void demand_work(struct client *client, struct tick *tick)
{
	bool demanding = expire(client, tick->now, tick->hurried);

	if (atomic_load(&demand_of(client)->shown))
		end_part(client, tick);
	sms_withdraw_if_left(client, tick->binding);
	if (atomic_load(&demand_of(client)->shown) && pages_say_too_much(client, tick->binding)) {
		set_noted(client, tick->binding);
		unset_whole(client, tick->binding);
	}

	tick->demand_now = atomic_load(&demand_of(client)->shown);
	tick->demanding = sms_stay(client, tick->now) || demanding || tick->demand_now;
	tick->lately = is_lately(client, tick);
}

void demand_stream_gone(struct stream *stream)
{
	demand_settle(stream->client);
}

void demand_drop(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	atomic_store(&demand_of(client)->shown, DEMAND_NONE);
	if (binding)
		pages_withdraw(client, binding, 0);
}

void demand_scrub(struct client *client, const struct level_binding *former)
{
	const struct level_binding *now = atomic_load(&client->binding);

	if (now && atomic_load(&demand_of(client)->shown)) {
		set_noted(client, now);
		if (former)
			unset_whole(client, now);
	}
	if (former) {
		pages_clear(former, now);
		sms_leave(former, now);
	}
}

void demand_move(struct client *client, struct level_binding *next)
{
	const struct level_binding *former = atomic_load(&client->binding);

	atomic_store(&client->binding, next);
	atomic_store(&demand_of(client)->came_first, 0);
	/* The agent fills new pages in as the former ones are. */
	if (!atomic_load(&demand_of(client)->shown))
		pages_clear(next, NULL);
	demand_scrub(client, former);
}

/* False: demand was shown already. */
static bool show_speculation(struct client *client, const struct level_binding *binding,
			     uint64_t now)
{
	if (atomic_load(&demand_of(client)->shown))
		return false;
	atomic_store(&demand_of(client)->speculation.shown, now);
	if (!demand_set_speculatively(client, binding))
		return false;
	atomic_fetch_add(&status_page(binding)->speculative, 1);
	return true;
}

bool demand_speculate(struct client *client, const struct level_binding *binding, uint64_t now,
		      uint64_t most)
{
	atomic_store(&demand_of(client)->speculation.until, now + most + SPECULATION_SLACK);
	if (!show_speculation(client, binding, now))
		return false;
	worker_wake();
	return true;
}

bool demand_expect(struct client *client, const struct level_binding *binding, uint64_t ns)
{
	struct speculation *speculation = &demand_of(client)->speculation;
	uint64_t now = client_now();

	if (!binding->level || atomic_load(&demand_of(client)->shown) == DEMAND_SHOWN)
		return false;
	atomic_store(&speculation->hinted, now);
	demand_speculate(client, binding, now, ns);
	return true;
}
