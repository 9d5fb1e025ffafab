#include "gates/need-probe.h"

/* ns of a phase before times count: until the agent, which looks each 50 ms, has told lower levels;
 * until these have got used to places, or to the whole GPU, as they see by looking what is asked
 * for, and have launches queued; until they leave some SMs. */
#define PREPARE   (120 * NS_PER_MS)
#define SETTLE    (80 * NS_PER_MS)
#define LEAVE     (10 * NS_PER_MS)
#define SPAN      (20 * NS_PER_MS) /* of the times of half a turn, at least */
#define SKIPPED   2u               /* periods of a phase that never count */
#define PATIENCE  (10 * NS_PER_S)  /* for a phase */
#define BLIND     2u               /* turns in which nothing is measured; then there is a rest */
#define REST      (480 * NS_PER_S) /* that, and from a result to the next turn; twice as long after */
#define REST_MAX  (7680 * NS_PER_S) /* one that is the same */
#define OVERDRAWN 2.0               /* a try that takes so many times what was planned ends */
#define LONG_NS   1e8 /* of a period: blocks of many may wait for others that find no room */
#define LEAST     (SKIPPED + NEED_TURN_TIMES) /* periods of a try */
#define SAVED     4096.0                      /* launches that may be saved up, or two tries */
#define SAVED_NS  1e9

static double most(double a, double b)
{
	return a > b ? a : b;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static void enter(struct need_probe *probe, enum need_phase phase, uint64_t now)
{
	probe->phase = phase;
	probe->since = now;
	probe->periods = 0;
	probe->counts = probe->launches = 0;
}

static void rest(struct need_probe *probe, uint64_t ns, uint64_t now)
{
	need_compare_drop_turn(&probe->compare);
	probe->due = now + ns;
	enter(probe, NEED_RESTS, now);
}

static void compare_with(struct need_probe *probe, enum need_way rival)
{
	probe->rival = rival;
	probe->planned = 0;
	need_compare_begin(&probe->compare);
}

void need_probe_begin(struct need_probe *probe, bool known, enum need_way usual, uint64_t now)
{
	*probe = (struct need_probe){.usual = usual, .settled = known};
	compare_with(probe, usual == NEED_WHOLE ? NEED_PLACES : usual);
	rest(probe, known && usual == NEED_WHOLE ? REST : 0, now);
}

/* The whole GPU is usual, so a try is at the client's cost. */
static bool costs(const struct need_probe *probe)
{
	return probe->usual == NEED_WHOLE;
}

enum need_way need_probe_way(const struct need_probe *probe)
{
	if (probe->phase != NEED_TRIES)
		return probe->usual;
	return costs(probe) ? probe->rival : NEED_WHOLE;
}

bool need_probe_asks(const struct need_probe *probe)
{
	return probe->phase != NEED_RESTS || !costs(probe);
}

/* A result. It is checked after a rest. */
static void settle(struct need_probe *probe, enum need_way way, uint64_t now)
{
	bool same = probe->settled && probe->usual == way && probe->rest;

	probe->rest = same ? smaller(2 * probe->rest, REST_MAX) : REST;
	probe->usual = way;
	probe->settled = true;
	compare_with(probe, way == NEED_WHOLE ? NEED_PLACES : way);
	rest(probe, probe->rest, now);
}

/* The next rival. Packing is left to need-choice.h: it is of one kernel. */
static enum need_way dearer(enum need_way way)
{
	return way == NEED_PLACES ? NEED_APART : NEED_WHOLE;
}

/* Returns whether there is a result. */
static bool judge(struct need_probe *probe, enum need_verdict verdict, uint64_t now)
{
	enum need_way next = dearer(probe->rival);
	bool over = verdict == NEED_AS_FAST || (verdict == NEED_SLOWER && next == NEED_WHOLE);

	if (over) {
		settle(probe, verdict == NEED_AS_FAST ? probe->rival : NEED_WHOLE, now);
		return true;
	}
	if (verdict == NEED_SLOWER) {
		probe->usual = NEED_WHOLE;
		probe->settled = false;
		compare_with(probe, next);
	}
	rest(probe, 0, now);
	return false;
}

/* Nothing could be measured: other work asks for the whole GPU, or none ends. */
static void give_up(struct need_probe *probe, uint64_t now)
{
	rest(probe, ++probe->blind % BLIND ? 0 : REST, now);
}

static bool end_turn(struct need_probe *probe, uint64_t now)
{
	if (!probe->compare.tried.n && !probe->compare.seen) {
		give_up(probe, now);
		return false;
	}
	probe->blind = 0;
	return judge(probe, need_compare_end_turn(&probe->compare), now);
}

static bool is_paid_for(const struct need_probe *probe, const struct need_budget *budget)
{
	return !costs(probe) ||
	       (budget->ns >= 0 && budget->launches >= most(probe->planned, LEAST));
}

void need_probe_work(struct need_probe *probe, const struct need_budget *budget, bool company,
		     bool able, uint64_t now)
{
	if (probe->phase == NEED_RESTS) {
		if (company && able && now >= probe->due && is_paid_for(probe, budget))
			enter(probe, NEED_PREPARES, now);
	} else if (!company) {
		rest(probe, 0, now);
	} else if (now - probe->since > PATIENCE) {
		give_up(probe, now);
	}
}

static uint64_t try_settles(const struct need_probe *probe)
{
	return costs(probe) && probe->rival != NEED_PLACES ? LEAVE : SETTLE;
}

static uint64_t settles(const struct need_probe *probe)
{
	if (probe->phase == NEED_PREPARES)
		return PREPARE;
	return probe->phase == NEED_TRIES ? try_settles(probe) : SETTLE;
}

/* The period is one of the phase's that count. */
static bool counts(struct need_probe *probe, uint64_t now)
{
	if (!probe->counts && probe->periods > SKIPPED && now - probe->since >= settles(probe))
		probe->counts = now;
	return probe->counts != 0;
}

static bool is_measured(struct need_probe *probe, const struct need_period *period, uint64_t now)
{
	struct need_times *times =
		period->way == NEED_WHOLE ? &probe->compare.whole : &probe->compare.tried;

	if (period->way != need_probe_way(probe) || !counts(probe, now))
		return false;
	need_times_add(times, period->ns);
	probe->launches += period->launches;
	return times->n == NEED_TURN_TIMES_MAX ||
	       (times->n >= NEED_TURN_TIMES && now - probe->counts >= SPAN);
}

/* Of a period, as it is usual. */
static double launches_each(const struct need_probe *probe)
{
	return (double)probe->launches / most(probe->compare.whole.n, 1);
}

/* Launches of a try, as there were as many in the time before. */
static double plan(const struct need_probe *probe, uint64_t now)
{
	double launches = (double)probe->launches, span = (double)larger(now - probe->counts, 1);
	double each = launches_each(probe);

	return most(launches / span * (double)(try_settles(probe) + SPAN), LEAST * each);
}

static void prepared(struct need_probe *probe, const struct need_budget *budget, uint64_t now)
{
	probe->planned = plan(probe, now);
	probe->before = need_compare_usual(&probe->compare);
	probe->spent = 0;
	if (costs(probe) && probe->before * launches_each(probe) > LONG_NS)
		rest(probe, REST, now);
	else if (is_paid_for(probe, budget))
		enter(probe, NEED_TRIES, now);
	else
		rest(probe, 0, now);
}

static void earn(const struct need_probe *probe, struct need_budget *budget,
		 const struct need_period *period)
{
	double launches = (double)period->launches, ns = (double)period->ns * launches;

	budget->launches =
		least(budget->launches + NEED_BUDGET * launches, most(2 * probe->planned, SAVED));
	budget->ns = least(budget->ns + NEED_BUDGET * ns, SAVED_NS);
}

static void spend(struct need_probe *probe, struct need_budget *budget,
		  const struct need_period *period)
{
	double launches = (double)period->launches;
	double lost = ((double)period->ns - probe->before) * launches;

	if (lost > 0) {
		budget->ns -= lost;
		budget->lost += (uint64_t)lost;
	}
	if (probe->phase != NEED_TRIES)
		return;
	budget->launches -= launches;
	budget->tried += period->launches;
	probe->spent += launches;
}

/* A period of a try at the client's cost. True: the try is over. */
static bool is_over(struct need_probe *probe, const struct need_period *period, bool enough)
{
	bool clear = probe->periods > SKIPPED && period->way == probe->rival &&
		     need_compare_is_clear(&probe->compare, period->ns);

	return enough || clear || probe->spent > OVERDRAWN * probe->planned;
}

static bool learn_try(struct need_probe *probe, const struct need_period *period, bool enough,
		      uint64_t now)
{
	if (!costs(probe))
		return enough && end_turn(probe, now);
	if (is_over(probe, period, enough))
		enter(probe, NEED_RETURNS, now);
	return false;
}

bool need_probe_learn(struct need_probe *probe, struct need_budget *budget,
		      const struct need_period *period, uint64_t now)
{
	earn(probe, budget, period);
	if (probe->phase == NEED_RESTS)
		return false;
	if (costs(probe) && probe->phase != NEED_PREPARES)
		spend(probe, budget, period);
	probe->periods++;
	if (probe->phase == NEED_RETURNS)
		return now - probe->since >= SETTLE && end_turn(probe, now);
	bool enough = is_measured(probe, period, now);
	if (probe->phase == NEED_TRIES)
		return learn_try(probe, period, enough, now);
	if (enough)
		prepared(probe, budget, now);
	return false;
}
