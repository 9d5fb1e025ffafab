#include "gates/waiting.h"

#include "client/level-binding.h"

/* ns: others that want the GPU now and then must not find a long native kernel each time. */
#define WAITED_FOR (10 * NS_PER_S)

/* ns: a pod launches its first kernels within milliseconds after it has come, and finds in its way
 * what lower levels queued before. So these expect others for so long after the last has gone. */
#define BELOW_FOR (600 * NS_PER_S)

/* Looks that found only such work, since the last that found other work. Somebody above who has
 * both kinds of work by turns must not find a native kernel. */
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

/* The maximal blocking time is the higher-level clients'. Same-level clients that must not wait for
 * kernels can wait for none. Where workers are bounded launches must be in a form, too: a native
 * one takes all SMs. */
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
