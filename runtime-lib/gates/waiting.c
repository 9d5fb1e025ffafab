#include "gates/waiting.h"

#include "client/level-binding.h"

/* ns for which a client that waited counts. One that wants the GPU now and then must not find a
 * long native kernel each time. */
#define WAITED_FOR (10 * NS_PER_S)

/* ns for which a client expects others above it after the last has gone. A pod launches its first
 * kernels within milliseconds after it has come, behind what lower levels queued before. */
#define BELOW_FOR (600 * NS_PER_S)

/* So many looks in a row must find only work that needs places. A client above that has both kinds
 * of work by turns must not find a native kernel. */
#define PLACES_SURE 3u

struct waiters waiters_table[CLIENTS_MAX];

void waiting_look(struct client *client, struct tick *tick)
{
	tick->waited = atomic_load(&waiters_of(client)->waiting) != WAITING_NOBODY;
}

/* Some of these @demands need more than the places of blocks that end. */
static bool need_sms(const struct level_binding *binding, uint64_t demands)
{
	return demands && demands & ~atomic_load(&demand_page(binding->wait)->places);
}

/* The maximum blocking time is that of higher-level clients. It is 0 for same-level clients that
 * must not wait for kernels, and where workers are bounded: launches must then be in a form,
 * because a native one takes all SMs. */
void waiting_work(struct client *client, struct tick *tick)
{
	struct waiters *state = waiters_of(client);
	bool urgent = binding_flag(tick->binding, WEIR_CONTROL_URGENT);
	bool bounded = binding_workers(tick->binding);
	uint64_t until = tick->now + WAITED_FOR, demands = binding_demands(tick->binding);

	if (urgent || demands)
		state->waited_until = until;
	if (urgent || need_sms(tick->binding, demands))
		state->places_seen = 0;
	else if (demands && state->places_seen < PLACES_SURE)
		state->places_seen++;
	if (urgent)
		state->urgent_until = until;
	if (binding_closed(tick->binding))
		state->held_until = until;
	if (binding_is_below(tick->binding))
		state->below_until = tick->now + BELOW_FOR;
	atomic_store(&state->below_lately, tick->now < state->below_until);
	atomic_store(&state->waiting, bounded || tick->now < state->waited_until ? WAITING_URGENT
				      : tick->now < state->held_until ? WAITING_SAME_LEVEL
								      : WAITING_NOBODY);
	atomic_store(&state->places,
		     tick->now < state->waited_until && state->places_seen == PLACES_SURE);
	atomic_store(&state->max_blocking_time,
		     bounded || tick->now < state->urgent_until
			     ? 0
			     : atomic_load(&control_page(tick->binding)->max_blocking_time));
}
