#include "policy/turns.h"

#include <utlist.h>

#include "weir/base.h"

void turns_init(struct turns *turns, const struct policy *policy,
		const struct policy_settings *settings, turns_hold_fn *hold)
{
	*turns = (struct turns){.policy = policy, .settings = *settings, .hold = hold};
	if (settings->aging == 0)
		turns->settings.aging = policy->shares ? POLICY_NEVER : POLICY_AGING;
	for (unsigned i = 0; i < WEIR_LEVELS; i++)
		turns->levels[i] = (struct turn){.settings = &turns->settings, .due = POLICY_NEVER};
}

static struct turn *turn_of(struct turns *turns, const struct policy_client *client)
{
	return &turns->levels[client->level];
}

static void set_hold(struct turns *turns, struct policy_client *client, bool held)
{
	if (client->held == held)
		return;
	client->held = held;
	turns->hold(turns, client, held);
}

/* The smallest objective of all that are active; there are few. */
static void find_objective(struct turn *turn)
{
	const struct policy_client *client;

	turn->slo = turn->running ? turn->running->slo : 0;
	if (turn->n_slo == 0)
		return;
	DL_FOREACH (turn->waiting, client) {
		if (client->slo && (!turn->slo || client->slo < turn->slo))
			turn->slo = client->slo;
	}
}

static void count(struct turn *turn, const struct policy_client *client, int sign)
{
	turn->n_active += (unsigned)sign;
	turn->weights += (uint64_t)sign * client->weight;
	turn->costs += (uint64_t)sign * policy_cost(turn, client);
	turn->n_slo += client->slo ? (unsigned)sign : 0;
	turn->settled = false;
}

static struct policy_client *find_first(const struct turns *turns, const struct turn *turn,
					uint64_t now)
{
	struct policy_client *client, *first = NULL;
	uint64_t smallest = 0;

	DL_FOREACH (turn->waiting, client) {
		uint64_t rank = turns->policy->rank(turn, client, now);
		if (!first || rank < smallest) {
			first = client;
			smallest = rank;
		}
	}
	return first;
}

/* @client waits now. */
static void note_waiting(const struct turns *turns, struct turn *turn,
			 const struct policy_client *client, uint64_t now)
{
	const struct policy *policy = turns->policy;

	turn->n_free += !client->held;
	if (turn->candidate && policy->preempts &&
	    policy->rank(turn, client, now) < policy->rank(turn, turn->candidate, now))
		turn->candidate = client;
}

static void withdraw(struct turn *turn, struct policy_client *client)
{
	DL_DELETE(turn->waiting, client);
	turn->n_free -= !client->held;
	if (turn->candidate == client)
		turn->candidate = NULL;
}

static void enter(struct turns *turns, struct policy_client *client, uint64_t now)
{
	struct turn *turn = turn_of(turns, client);

	client->active = true;
	client->waited = client->ran = false;
	client->arrived = client->since = now;
	count(turn, client, 1);
	if (turns->policy->arrived)
		turns->policy->arrived(turn, client, now);
	DL_APPEND(turn->waiting, client);
	note_waiting(turns, turn, client, now);
	find_objective(turn);
}

static void leave(struct turns *turns, struct policy_client *client)
{
	struct turn *turn = turn_of(turns, client);

	if (turn->running == client)
		turn->running = NULL;
	else
		withdraw(turn, client);
	client->active = false;
	count(turn, client, -1);
	find_objective(turn);
	set_hold(turns, client, false);
}

void turns_add(struct turns *turns, struct policy_client *client)
{
	(void)turns;
	*client = (struct policy_client){.level = client->level,
					 .group = client->group,
					 .weight = client->weight,
					 .slo = client->slo,
					 .cost = client->cost};
}

void turns_remove(struct turns *turns, struct policy_client *client, uint64_t now)
{
	turns_work(turns, client, 0, 0, now);
}

void turns_work(struct turns *turns, struct policy_client *client, uint64_t launches,
		uint64_t remaining, uint64_t now)
{
	struct turn *turn = turn_of(turns, client);
	bool active = launches > 0;

	if (client->active && client->remaining != remaining) {
		turn->settled = false;
		if (client != turn->running)
			turn->candidate = NULL;
	}
	client->launches = launches;
	client->remaining = remaining;
	if (active == client->active || turns->policy->untouched)
		return;
	if (active)
		enter(turns, client, now);
	else
		leave(turns, client);
}

void turns_set_concurrent(struct turns *turns, uint8_t level, bool concurrent)
{
	turns->levels[level].concurrent = concurrent;
}

/* What one who is held takes to leave is the end of the turn before. */
static void note_ran(struct policy_client *client, uint64_t ns)
{
	client->ran |= ns > 0 && !client->held;
}

/* What runs while nobody else wants to is nobody's debt, but the turn gets older. */
void turns_ran(struct turns *turns, struct policy_client *client, uint64_t ns)
{
	struct turn *turn = turn_of(turns, client);

	client->remaining -= ns < client->remaining ? ns : client->remaining;
	note_ran(client, ns);
	if (turn->running == client)
		turn->used += ns;
	else
		turn->candidate = NULL;
	if (turn->waiting && turns->policy->ran)
		turns->policy->ran(turn, client, (int64_t)ns);
}

void turns_overran(struct turns *turns, struct policy_client *client, uint64_t ns)
{
	struct turn *turn = turn_of(turns, client);

	note_ran(client, ns);
	if (turn->waiting && turns->policy->ran)
		turns->policy->ran(turn, client, (int64_t)ns);
}

void turns_refund(struct turns *turns, struct policy_client *client, uint64_t ns)
{
	if (turns->policy->ran)
		turns->policy->ran(turn_of(turns, client), client, -(int64_t)ns);
}

void turns_change(struct turns *turns, struct policy_client *client,
		  const struct policy_client *news, uint64_t now)
{
	bool active = client->active, moves = client->level != news->level;

	if (active && moves)
		leave(turns, client);
	else if (active)
		count(turn_of(turns, client), client, -1);
	client->level = news->level;
	client->weight = news->weight;
	client->slo = news->slo;
	client->cost = news->cost;
	if (active && moves) {
		enter(turns, client, now);
	} else if (active) {
		count(turn_of(turns, client), client, 1);
		find_objective(turn_of(turns, client));
		turn_of(turns, client)->candidate = NULL;
	}
}

/* When @client must have the turn. An objective counts for work that just arrived: who loses the
 * turn with work left has started. Who runs abreast waits for nothing. */
static uint64_t due_of(const struct turns *turns, const struct turn *turn,
		       const struct policy_client *client)
{
	uint64_t aging = turns->settings.aging, due = POLICY_NEVER;
	uint64_t lead = turns->settings.late;

	if (turn->abreast && !client->held)
		return POLICY_NEVER;
	if (aging < POLICY_NEVER - client->since)
		due = client->since + aging;
	if (client->slo && !client->waited) {
		lead += turn->running ? policy_cost(turn, turn->running) : 0;
		uint64_t patience = client->slo > lead ? client->slo - lead : 0;
		if (client->arrived + patience < due)
			due = client->arrived + patience;
	}
	return due;
}

/* The one that must have the turn before all others. For its age alone that is the list's first,
 * if all wait. */
static struct policy_client *find_urgent(const struct turns *turns, const struct turn *turn)
{
	struct policy_client *client, *first = turn->waiting;
	uint64_t earliest = first ? due_of(turns, turn, first) : POLICY_NEVER;

	if (turn->n_slo == 0 && !turn->abreast)
		return first;
	DL_FOREACH (turn->waiting, client) {
		uint64_t due = due_of(turns, turn, client);
		if (due < earliest) {
			earliest = due;
			first = client;
		}
	}
	return first;
}

/* Who must have the turn now; NULL: nobody. */
static struct policy_client *find_due(const struct turns *turns, const struct turn *turn,
				      uint64_t now)
{
	struct policy_client *urgent = now < turn->due ? NULL : find_urgent(turns, turn);

	return urgent && due_of(turns, turn, urgent) <= now ? urgent : NULL;
}

/* Who did not run at all has waited all the time, and keeps its place. */
static void put_back(struct turn *turn, struct policy_client *client)
{
	struct policy_client *after = turn->waiting;

	while (after && after->since <= client->since)
		after = after->next;
	DL_PREPEND_ELEM(turn->waiting, after, client);
}

static void stop(struct turns *turns, struct turn *turn, uint64_t now)
{
	struct policy_client *client = turn->running;
	uint64_t left = turn->used < turn->allowed ? turn->allowed - turn->used : 0;

	turn->running = NULL;
	client->ran = false;
	if (turn->used > 0) {
		client->since = now;
		client->waited = true;
		DL_APPEND(turn->waiting, client);
	} else {
		put_back(turn, client);
	}
	if (turns->policy->ended)
		turns->policy->ended(turn, client, left, now);
	note_waiting(turns, turn, client, now);
}

static void start(struct turns *turns, struct turn *turn, struct policy_client *client, bool forced,
		  uint64_t now)
{
	const struct policy *policy = turns->policy;

	withdraw(turn, client);
	turn->forced = forced;
	turn->running = client;
	turn->started = now;
	turn->used = 0;
	turn->allowed = policy->quantum ? policy->quantum(turn, client, now) : POLICY_NEVER;
	if (forced && turn->allowed > turns->settings.quantum)
		turn->allowed = turns->settings.quantum;
	if (forced && turn->allowed < turns->settings.min_quantum)
		turn->allowed = turns->settings.min_quantum;
}

static bool preempted(const struct turns *turns, struct turn *turn, uint64_t now)
{
	const struct policy *policy = turns->policy;

	if (!policy->preempts)
		return false;
	if (!turn->candidate)
		turn->candidate = find_first(turns, turn, now);
	if (turn->abreast)
		return policy->rank(turn, turn->candidate, now) <
		       policy->rank(turn, turn->running, now);
	return policy->preempts(turn, turn->candidate, turn->running, now);
}

/* Takes the turn from the running one if it is time. True: it is free. */
static bool vacate(struct turns *turns, struct turn *turn, bool due, uint64_t now)
{
	if (!turn->running)
		return true;
	bool over = turn->used >= turn->allowed ||
		    (!turn->forced && (due || preempted(turns, turn, now)));
	if (over)
		stop(turns, turn, now);
	return over;
}

/* Whether @client may not run beside the one that has the turn. */
static bool must_wait(const struct turns *turns, const struct turn *turn,
		      const struct policy_client *client, uint64_t now)
{
	const struct policy_client *running = turn->running;

	if (running->group && client->group == running->group)
		return false;
	return !turn->abreast || turn->forced ||
	       turns->policy->preempts(turn, running, client, now);
}

/* It could run abreast until now. If it did not, it has waited all the time. */
static void wait_from_now(struct turn *turn, struct policy_client *client, uint64_t now)
{
	if (!client->ran)
		return;
	client->ran = false;
	client->since = now;
	client->waited = true;
	DL_DELETE(turn->waiting, client);
	DL_APPEND(turn->waiting, client);
}

static void hold_some(struct turns *turns, struct turn *turn, uint64_t now)
{
	struct policy_client *client, *next;

	turn->n_free = 0;
	DL_FOREACH_SAFE (turn->waiting, client, next) {
		bool held = must_wait(turns, turn, client, now);
		if (turn->abreast && held && !client->held)
			wait_from_now(turn, client, now);
		set_hold(turns, client, held);
		turn->n_free += !held;
	}
}

/* Most of those that are not held yet are at the list's end. */
static void hold_all(struct turns *turns, struct turn *turn)
{
	struct policy_client *client = turn->waiting;

	for (; client && turn->n_free > 0; client = client->prev) {
		turn->n_free -= !client->prev->held;
		set_hold(turns, client->prev, true);
	}
}

static void write_holds(struct turns *turns, struct turn *turn, uint64_t now)
{
	if (turn->running && (turn->running->group || turn->abreast))
		hold_some(turns, turn, now);
	else
		hold_all(turns, turn);
	if (turn->running)
		set_hold(turns, turn->running, false);
}

/* Whether its clients run abreast now. Who did, and does no longer, has not waited for it. */
static void set_abreast(struct turns *turns, struct turn *turn, uint64_t now)
{
	bool abreast = turns->policy->abreast && turn->concurrent && turn->n_slo == 0;
	struct policy_client *client, *next;

	if (turn->abreast && !abreast) {
		DL_FOREACH_SAFE (turn->waiting, client, next)
			if (!client->held)
				wait_from_now(turn, client, now);
	}
	/* What remains of one says whether others wait, and changes all the time. */
	if (turn->abreast || abreast)
		turn->settled = false;
	turn->abreast = abreast;
}

static void decide(struct turns *turns, struct turn *turn, uint64_t now)
{
	const struct policy_client *before = turn->running, *urgent;

	set_abreast(turns, turn, now);
	if (turn->settled && turn->used < turn->allowed && (turn->forced || now < turn->due))
		return;
	while (turn->waiting) {
		struct policy_client *due = find_due(turns, turn, now);
		if (!vacate(turns, turn, due != NULL, now))
			break;
		start(turns, turn, due ? due : find_first(turns, turn, now), due != NULL, now);
		/* One that may not run yet passes its turn on. */
		if (turn->allowed > 0)
			break;
	}
	write_holds(turns, turn, now);
	if (turn->running != before && before && (before->held || !turn->abreast))
		turn->switches++;
	urgent = find_urgent(turns, turn);
	turn->due = urgent ? due_of(turns, turn, urgent) : POLICY_NEVER;
	turn->settled = true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When something is to be decided if all runs as predicted: the turn is over, its work is done, or
 * somebody must have it. */
static uint64_t next_decision(const struct turn *turn, const struct policy_settings *settings,
			      uint64_t now)
{
	uint64_t left = turn->allowed - turn->used, work = turn->running->remaining;
	uint64_t due = turn->forced ? POLICY_NEVER : turn->due;

	left = smaller(left, work > settings->nap ? work : settings->nap);
	return smaller(left < POLICY_NEVER - now ? now + left : POLICY_NEVER, due);
}

uint64_t turns_decide(struct turns *turns, uint64_t now)
{
	uint64_t next = POLICY_NEVER;
	bool blocked = false;

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		struct turn *turn = &turns->levels[level];
		decide(turns, turn, now);
		if (turn->waiting && !blocked)
			next = smaller(next, next_decision(turn, &turns->settings, now));
		blocked |= turn->n_active > 0;
	}
	return next > now ? next : now + 1;
}
