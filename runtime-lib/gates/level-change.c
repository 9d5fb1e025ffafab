#include "gates/level-change.h"

#include "client/stream-level.h"
#include "gates/demand.h"
#include "gates/gate.h"

#include "weir/log.h"

#include <string.h>

#define FORMER_FOR   NS_PER_S /* ns that a launch may go on with the binding that it has read */
#define SETTLE_AGAIN NS_PER_S /* ns, after the driver did not take the pages */

/* Worker. */
static struct level_change {
	struct level_binding *raise;        /* higher level, until gates of the lower are passed */
	const struct level_binding *former; /* the binding before, for a while; or NULL */
	uint64_t former_until, settle_at, lower_at; /* ns */
} changes[CLIENTS_MAX];

static bool page_register(struct page *page)
{
	unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
			 (page->writable ? 0 : CU_MEMHOSTREGISTER_READ_ONLY);
	CUdeviceptr gpu;

	if (atomic_load(&page->gpu))
		return true;
	CUresult result = real(cuMemHostRegister_v2)(page->memory, WEIR_PAGE_SIZE, flags);
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		result = real(cuMemHostGetDevicePointer_v2)(&gpu, page->memory, 0);
	if (result != CUDA_SUCCESS) {
		log_limited(LOG_WARNING, 60,
			    "the driver does not take a shared page (error %d): no gates yet",
			    result);
		return false;
	}
	atomic_store(&page->gpu, gpu);
	return true;
}

/* With the client's context current. False: it cannot gate now (logged). */
static bool register_pages(const struct level_binding *binding)
{
	beside_captures();
	return (!binding->wait || page_register(binding->wait)) && page_register(binding->control);
}

/* Levels that streams were given, but for which the present binding has none of its own. */
static uint32_t missing(const struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	uint32_t levels = binding ? atomic_load(&streams_of(client)->levels) : 0;

	for (unsigned level = 0; binding && level < WEIR_DEMAND_LEVELS; level++) {
		if (level >= binding->level || binding->lower[level])
			levels &= ~(1u << level);
	}
	return levels;
}

/* False: the driver takes none of the pages now. */
static bool register_lower(const struct client *client, const struct level_binding *binding)
{
	uint32_t levels = missing(client);
	bool any = false;

	beside_captures();
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		if (levels & 1u << level)
			any |= page_register(binding->below[level]);
	}
	return any;
}

static const struct level_binding *lower(const struct level_binding *binding, unsigned level)
{
	struct level_binding *lowered = malloc(sizeof(*lowered));

	if (!lowered)
		return NULL;
	*lowered = *binding;
	memset(lowered->lower, 0, sizeof(lowered->lower));
	lowered->level = (uint8_t)level;
	lowered->wait = binding->below[level];
	lowered->lowered = true;
	lowered->own = 1ull << binding->bit % 64;
	return lowered;
}

/* Before @binding is published, with the client's context current. A stream without a binding of
 * its level acts at the client's. */
static void make_lower(const struct client *client, struct level_binding *binding)
{
	uint32_t levels = atomic_load(&streams_of(client)->levels);

	beside_captures();
	for (unsigned level = 0; level < binding->level; level++) {
		if (levels & 1u << level && !binding->lower[level] &&
		    page_register(binding->below[level]))
			binding->lower[level] = lower(binding, level);
	}
}

/* Keeps the present binding for FORMER_FOR: launches that have read it still set its words. Until
 * then demand_scrub() clears those that the next binding does not have, and sets that one's. */
static void keep_former(struct client *client, uint64_t now)
{
	changes[client->index].former = atomic_load(&client->binding);
	changes[client->index].former_until = now + FORMER_FOR;
}

static void change_to(struct client *client, struct level_binding *next, uint64_t now)
{
	keep_former(client, now);
	make_lower(client, next);
	demand_move(client, next);
}

/* A gate of the lower level waits for the demand that the higher level shows: our own. So each
 * stream gets a marker, behind which gates are of the new level. A launch that still uses the lower
 * binding has counted itself as begun before it read that (launch.c). @between: as @next, but with
 * the demand of the lower level. */
static void begin_raise(struct client *client, struct level_binding *between,
			struct level_binding *next, uint64_t now)
{
	change_to(client, between, now);
	stream_for_each (s, client) {
		s->raise_mark = atomic_load(&s->begun);
		stream_want_marker(s);
	}
	changes[client->index].raise = next;
}

static bool raise_passed(struct client *client)
{
	stream_for_each (s, client) {
		if (atomic_load(&s->completed) < s->raise_mark)
			return false;
	}
	return true;
}

/* The driver refused. If the agent has sent another binding meanwhile, this one is out of date. */
static void put_off(struct client *client, struct level_binding *next, uint64_t time)
{
	changes[client->index].settle_at = time + SETTLE_AGAIN;
	if (!binding_put_back(client, next))
		free(next);
}

static bool is_raise(const struct level_binding *now, const struct level_binding *next)
{
	return now && next->level > now->level;
}

/* With gates of the present level inside graphs the client stays there, on the pages of @next. */
static void keep_level(struct client *client, struct level_binding *next)
{
	const struct level_binding *now = atomic_load(&client->binding);
	uint32_t levels = atomic_load(&gating_of(client)->graph_levels);

	if (!is_raise(now, next) || !(levels & ((1u << next->level) - 1)))
		return;
	log_limited(LOG_INFO, 60, "stays at level %u: graphs with gates of that level exist",
		    now->level);
	next->wait = next->below[now->level];
	next->level = now->level;
}

static bool same(const struct level_binding *a, const struct level_binding *b)
{
	return a->level == b->level && a->bit == b->bit && a->wait == b->wait &&
	       a->control == b->control && a->status == b->status &&
	       memcmp(a->below, b->below, sizeof(a->below)) == 0;
}

/* Streams were given lower levels: the same binding with these. */
static void add_lower(struct client *client, uint64_t now)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	struct level_binding *next = NULL;

	changes[client->index].lower_at = now + SETTLE_AGAIN;
	if (register_lower(client, binding))
		next = malloc(sizeof(*next));
	if (!next)
		return;
	*next = *binding;
	change_to(client, next, now);
}

/* Takes @next. */
static void adopt(struct client *client, struct level_binding *next, uint64_t time)
{
	const struct level_binding *now = atomic_load(&client->binding);

	log_debug("client %llu: level %u, bit %u", (unsigned long long)next->number, next->level,
		  next->bit);
	free(take(changes[client->index].raise));
	if (is_raise(now, next)) {
		struct level_binding *between = malloc(sizeof(*between));
		if (!between) {
			put_off(client, next, time);
			return;
		}
		*between = *next;
		between->level = now->level;
		begin_raise(client, between, next, time);
	} else if (now && same(now, next)) {
		free(next);
		if (!changes[client->index].former)
			keep_former(client, time);
	} else {
		change_to(client, next, time);
	}
}

void level_init(struct client *client)
{
	binding_unregister_pages(client);
	changes[client->index] = (struct level_change){0};
}

void level_open(struct client *client)
{
	struct level_binding *binding = binding_exchange(client, NULL);

	if (binding && register_pages(binding))
		atomic_store(&client->binding, binding);
	else
		binding_exchange(client, binding); /* the worker tries again */
}

/* A raise publishes its own bindings. */
static bool lower_due(const struct client *client, uint64_t now)
{
	const struct level_change *change = &changes[client->index];

	return !change->raise && now >= change->lower_at && missing(client);
}

void level_look(struct client *client, struct tick *tick)
{
	const struct level_change *change = &changes[client->index];

	tick->binding = streams_binding(client);
	tick->rebinding = binding_waits(client) || change->raise || lower_due(client, tick->now);
}

void level_drive(struct client *client, struct tick *tick)
{
	struct level_change *change = &changes[client->index];
	struct level_binding *next =
		tick->now < change->settle_at ? NULL : binding_exchange(client, NULL);

	if (next)
		keep_level(client, next);
	if (next && register_pages(next))
		adopt(client, next, tick->now);
	else if (next)
		put_off(client, next, tick->now);
	if (change->raise && raise_passed(client))
		change_to(client, take(change->raise), tick->now);
	if (lower_due(client, tick->now))
		add_lower(client, tick->now);
}

void level_work(struct client *client, struct tick *tick)
{
	struct level_change *change = &changes[client->index];
	const struct level_binding *binding = streams_binding(client);

	if (binding)
		tick->binding = binding;
	if (change->former) {
		demand_scrub(client, change->former);
		if (tick->now > change->former_until)
			change->former = NULL;
	}
	tick->changing = change->raise || change->former;
}

/* The binding stays in memory: a thread in the middle of a launch may read it, and gates on the GPU
 * wait for its pages. */
void level_forget(struct client *client)
{
	atomic_store(&client->binding, NULL);
}
