#include "client/demand.h"

#include "client/early.h"
#include "launch/gate.h"
#include "client/link.h"
#include "client/start.h"
#include "client/stream.h"
#include "client/worker.h"

/* A burst is kept together when its launches follow each other this closely. */
#define LINGER_MAX 100000u /* ns */

/* For so long who came first is ahead of equals who come while it is at work. */
#define FIRST_MAX 20000000u /* ns */

/* True: nobody else of our level or above had work then; of several who come at once, for one. */
static bool set_bits(const struct level_binding *binding)
{
	uint64_t own = 1ull << binding->bit % 64, others = UINT64_MAX;

	if (binding->bit == WEIR_BIT_SHARED)
		return false;
	for (unsigned level = 0; level < binding->level; level++)
		others = atomic_fetch_or(&demand_page(binding->below[level])->word, own) & ~own;
	return !others;
}

static void clear_bits(const struct level_binding *binding, unsigned from)
{
	if (binding->bit == WEIR_BIT_SHARED)
		return;
	for (unsigned level = from; level < binding->level; level++)
		atomic_fetch_and(&demand_page(binding->below[level])->word,
				 ~(1ull << binding->bit));
}

static void tell(const struct level_binding *binding, uint64_t outstanding, uint64_t remaining)
{
	struct weir_status_page *status = status_page(binding);

	atomic_store_explicit(&status->remaining, remaining, memory_order_relaxed);
	atomic_store_explicit(&status->outstanding, outstanding, memory_order_release);
}

/* Counts the time since it was counted last. @next: from when on; 0: there is no demand any more.
 */
static void count_time(struct client *client, uint64_t now, uint64_t next)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	uint64_t since = atomic_exchange(&client->demand_since, next);

	if (since && now > since && binding)
		atomic_fetch_add_explicit(&status_page(binding)->demand_time, now - since,
					  memory_order_relaxed);
}

static void learn_gap(struct client *client, uint64_t gap)
{
	uint64_t mean = atomic_load(&client->gap);

	atomic_store(&client->gap, mean ? mean - mean / 4 + gap / 4 : gap);
}

/* How long the next launch is worth waiting for; 0: it is not. */
static uint64_t linger(const struct client *client)
{
	uint64_t gap = atomic_load(&client->gap);

	return gap < LINGER_MAX ? 2 * gap : 0;
}

static void show(struct client *client, const struct level_binding *binding, uint64_t now)
{
	burst_begin(&client->burst, now);
	atomic_store_explicit(&client->came_first, set_bits(binding), memory_order_relaxed);
	atomic_store(&client->demanding, DEMAND_SHOWN);
}

void demand_set(struct client *client, const struct level_binding *binding, uint64_t predicted)
{
	uint64_t idle = atomic_load(&client->idle_since), now = client_now(), none = 0;

	if (idle && now > idle)
		learn_gap(client, now - idle);
	early_launched(client, binding, now);
	atomic_store(&client->idle_since, 0);
	if (!atomic_load(&client->demand_since))
		atomic_compare_exchange_strong(&client->demand_since, &none, now);
	show(client, binding, now);
	/* Behind the flag: the worker, which may just be telling that there is none, sees that. */
	tell(binding, 1, predicted);
	if (gate_tells(binding))
		link_tell_work(client, now);
}

static bool busy(struct client *client)
{
	stream_for_each (s, client) {
		if (stream_outstanding(s))
			return true;
	}
	return false;
}

/* Takes the bits back that were shown so. False: they were not. */
static bool take_back(struct client *client, const struct level_binding *binding, int shown)
{
	if (!atomic_compare_exchange_strong(&client->demanding, &shown, DEMAND_NONE))
		return false;
	clear_bits(binding, 0);
	return true;
}

/* A launch that began while the bits went: it may have seen them set. Set them whoever else does.
 */
static void set_again(struct client *client, const struct level_binding *binding)
{
	if (!busy(client))
		return;
	show(client, binding, client_now());
	tell(binding, 1, 0);
}

/* For demand that is noted already. Whoever has seen that, and that nothing is outstanding any
 * more, may have cleared the bits before they were set; then nobody would do so again. */
static void set_noted(struct client *client, const struct level_binding *binding)
{
	set_bits(binding);
	if (atomic_load(&client->demanding))
		return;
	clear_bits(binding, 0);
	set_again(client, binding);
}

bool demand_set_early(struct client *client, const struct level_binding *binding)
{
	int none = DEMAND_NONE;

	if (!atomic_compare_exchange_strong(&client->demanding, &none, DEMAND_EARLY))
		return false;
	set_noted(client, binding);
	return true;
}

static void clear(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding || !take_back(client, binding, DEMAND_SHOWN))
		return;
	count_time(client, client_now(), 0);
	burst_end(&client->burst, atomic_load(&client->idle_since));
	start_done(client, binding);
	tell(binding, 0, 0);
	set_again(client, binding);
}

static void clear_early(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (!binding || !take_back(client, binding, DEMAND_EARLY))
		return;
	early_missed(client, now);
	set_again(client, binding);
}

void demand_settle(struct client *client)
{
	if (atomic_load(&client->demanding) != DEMAND_SHOWN || busy(client))
		return;
	uint64_t none = 0;
	atomic_compare_exchange_strong(&client->idle_since, &none, client_now());
	if (linger(client))
		worker_wake();
	else
		clear(client);
}

bool demand_expire(struct client *client, uint64_t now)
{
	int shown = atomic_load(&client->demanding);

	if (shown == DEMAND_NONE)
		return false;
	if (shown == DEMAND_EARLY) {
		if (!busy(client) && !early_stays(client, now))
			clear_early(client, now);
		return true;
	}
	count_time(client, now, now);
	if (busy(client)) {
		burst_goes_on(&client->burst, now);
		if (burst_lasts(&client->burst, now) > FIRST_MAX)
			atomic_store(&client->came_first, 0);
		return true;
	}
	uint64_t idle = atomic_load(&client->idle_since);
	if (!idle) {
		atomic_store(&client->idle_since, now);
		return true;
	}
	if (now - idle < linger(client))
		return true;
	clear(client);
	return atomic_load(&client->demanding);
}

void demand_drop(struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	atomic_store(&client->demanding, DEMAND_NONE);
	if (binding)
		clear_bits(binding, 0);
}

void demand_scrub(struct client *client, const struct level_binding *former)
{
	const struct level_binding *now = atomic_load(&client->binding);

	clear_bits(former, now && now->bit == former->bit ? now->level : 0);
}

void demand_move(struct client *client, const struct level_binding *next)
{
	const struct level_binding *now = atomic_load(&client->binding);

	atomic_store(&client->binding, next);
	atomic_store(&client->came_first, 0);
	if (atomic_load(&client->demanding))
		set_noted(client, next);
	if (now)
		demand_scrub(client, now);
}
