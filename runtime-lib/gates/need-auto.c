#include "gates/need-auto.h"

#include "client/lesson.h"
#include "client/link.h"

#include "weir/log.h"

/* A period in 64 bits. */
#define WAY_BITS      2
#define LAUNCHES_BITS 20
#define LAUNCHES_MAX  ((1ull << LAUNCHES_BITS) - 1)
#define NS_MAX        ((1ull << (64 - WAY_BITS - LAUNCHES_BITS)) - 1) /* 73 minutes */

static const enum need_way ways[] = {
	[WEIR_YIELDS_UNKNOWN] = NEED_WHOLE,
	[WEIR_YIELDS_PLACES] = NEED_PLACES,
	[WEIR_YIELDS_SMS] = NEED_APART,
	[WEIR_YIELDS_WHOLE] = NEED_WHOLE,
};
static const enum weir_profile_yields results[NEED_WAYS] = {
	[NEED_PLACES] = WEIR_YIELDS_PLACES,
	[NEED_APART] = WEIR_YIELDS_SMS,
	[NEED_WHOLE] = WEIR_YIELDS_WHOLE,
};

struct need_auto need_auto_table[CLIENTS_MAX];

enum need_way need_auto_way(struct client *client)
{
	struct need_auto *state = need_auto_of(client);
	int less = load_relaxed(&state->less);

	store_relaxed(&state->able, 1);
	store_relaxed(&state->asked, less ? less : 1 + (int)NEED_WHOLE);
	return less ? (enum need_way)(less - 1) : NEED_WHOLE;
}

static uint64_t pack(const struct need_period *period)
{
	return smaller(period->ns, NS_MAX) << (WAY_BITS + LAUNCHES_BITS) |
	       smaller(period->launches, LAUNCHES_MAX) << WAY_BITS | (uint64_t)period->way;
}

static struct need_period unpack(uint64_t packed)
{
	return (struct need_period){
		.way = (enum need_way)(packed & ((1u << WAY_BITS) - 1)),
		.launches = packed >> WAY_BITS & LAUNCHES_MAX,
		.ns = packed >> (WAY_BITS + LAUNCHES_BITS),
	};
}

void need_auto_ended(struct client *client, bool whole, uint64_t launches, uint64_t ns)
{
	struct need_auto *state = need_auto_of(client);
	int asked = atomic_exchange(&state->asked, 0);

	if (!launches || !ns || (!whole && !asked))
		return;
	const struct need_period period = {whole ? NEED_WHOLE : (enum need_way)(asked - 1),
					   launches, ns / launches};
	uint32_t at = atomic_fetch_add(&state->ended, 1) % NEED_PERIODS;
	atomic_store(&state->periods[at], pack(&period));
}

/* Worker. */

static enum weir_profile_yields yields_of(const struct need_probe *probe)
{
	return probe->settled ? results[probe->usual] : WEIR_YIELDS_UNKNOWN;
}

/* What does beside all companies so far. */
static enum weir_profile_yields found(const struct need_auto *state)
{
	enum weir_profile_yields most = WEIR_YIELDS_UNKNOWN;

	for (unsigned i = 0; i < NEED_COMPANIES; i++) {
		enum weir_profile_yields one = yields_of(&state->companies[i].probe);
		most = one > most ? one : most;
	}
	return most;
}

/* Of a company that is new. Where another one needed the whole GPU this one may not. */
static enum weir_profile_yields expected(const struct need_auto *state,
					 const struct level_binding *binding)
{
	enum weir_profile_yields here = found(state);
	uint32_t told = load_relaxed(&control_page(binding)->yield_known);

	if (here == WEIR_YIELDS_UNKNOWN && told <= WEIR_YIELDS_WHOLE)
		return (enum weir_profile_yields)told;
	return here == WEIR_YIELDS_WHOLE ? WEIR_YIELDS_UNKNOWN : here;
}

static struct need_company *company_of(struct need_auto *state, uint32_t number)
{
	struct need_company *oldest = state->companies;

	for (unsigned i = 0; i < NEED_COMPANIES; i++) {
		struct need_company *company = &state->companies[i];
		if (company->number == number)
			return company;
		oldest = company->seen < oldest->seen ? company : oldest;
	}
	return oldest;
}

static void meet(struct need_auto *state, const struct level_binding *binding, uint32_t number,
		 uint64_t now)
{
	struct need_company *company = company_of(state, number);

	if (company->number != number) {
		enum weir_profile_yields known = expected(state, binding);
		company->number = number;
		need_probe_begin(&company->probe, known != WEIR_YIELDS_UNKNOWN, ways[known], now);
	}
	/* A turn beside others ends here. */
	if (state->now && state->now != company)
		need_probe_work(&state->now->probe, &state->budget, false, false, now);
	company->seen = now;
	state->now = company;
	atomic_store(&state->met, 1);
}

/* What was found, for later processes. If there is no room for it now, there is after the next
 * result. */
static void teach(struct need_auto *state, const struct client *client, uint64_t ns)
{
	static const uint8_t program[32];
	enum weir_profile_yields now = found(state);
	int sms = driver_attribute(client->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	const struct weir_profile profile = {
		.geometry = {{1, 1, 1}, {1, 1, 1}, .sms = (uint32_t)sms, .latency = 1},
		.native = larger(ns, 1),
		.samples = NEED_TURN_TIMES,
		.yields = now,
	};

	log_debug("beside %08x lower levels leave: %s", state->now->number,
		  (const char *[]){"?", "places", "SMs", "all"}[yields_of(&state->now->probe)]);
	if (now == state->taught || !weir_profile_is_sane(&profile) ||
	    !lesson_put(client, program, &profile))
		return;
	state->taught = now;
	link_wake();
}

/* Work that has ended since the last look. */
static void learn(struct need_auto *state, const struct client *client, uint64_t now)
{
	uint32_t ended = atomic_load(&state->ended);

	if (ended - state->read > NEED_PERIODS)
		state->read = ended - NEED_PERIODS;
	for (; state->read != ended; state->read++) {
		uint64_t packed = atomic_exchange(&state->periods[state->read % NEED_PERIODS], 0);
		const struct need_period period = unpack(packed);
		if (packed && state->now &&
		    need_probe_learn(&state->now->probe, &state->budget, &period, now))
			teach(state, client, period.ns);
	}
}

static void ask_for(struct need_auto *state, enum need_way way)
{
	atomic_store(&state->less, way == NEED_WHOLE ? 0 : 1 + (int)way);
}

static void show(const struct need_auto *state, struct weir_status_page *status)
{
	const struct need_company *now = state->now;

	atomic_store(&status->yield_asks, now && need_probe_asks(&now->probe));
	atomic_store(&status->yield_found, now ? yields_of(&now->probe) : WEIR_YIELDS_UNKNOWN);
	atomic_store(&status->yield_tried, state->budget.tried);
	atomic_store(&status->yield_lost, state->budget.lost);
}

/* Until the agent tells that somebody works below again, it is probably the last company. */
void need_auto_work(struct client *client, struct tick *tick)
{
	struct need_auto *state = need_auto_of(client);
	uint32_t number = load_relaxed(&control_page(tick->binding)->company);
	bool able = atomic_exchange(&state->able, 0);

	if (!need_is_auto(tick->binding)) {
		state->now = NULL;
		ask_for(state, NEED_WHOLE);
		show(state, status_page(tick->binding));
		return;
	}
	if (number)
		meet(state, tick->binding, number, tick->now);
	learn(state, client, tick->now);
	if (!state->now)
		return;
	need_probe_work(&state->now->probe, &state->budget, number != 0, able, tick->now);
	ask_for(state, need_probe_way(&state->now->probe));
	show(state, status_page(tick->binding));
}
