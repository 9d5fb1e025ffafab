#include "policy/min-rate.h"

#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define DECIMALS 3
#define WORK_MAX 1000000000ull /* ns, of a call: a report is not believed beyond it */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool min_rate_parse(const char *text, uint32_t *out)
{
	uint32_t rate = *text == '1' ? MIN_RATE_ONE : 0, unit = MIN_RATE_ONE;

	if ((*text != '0' && *text != '1') || (text[1] && text[1] != '.'))
		return false;
	if (text[1]) {
		if (!text[2] || strlen(text + 2) > DECIMALS)
			return false;
		for (const char *c = text + 2; *c; c++) {
			if (!is_digit(*c))
				return false;
			unit /= 10;
			rate += (uint32_t)(*c - '0') * unit;
		}
	}
	if (!rate || rate > MIN_RATE_ONE)
		return false;
	*out = rate;
	return true;
}

const char *min_rate_format(uint64_t thousandths, char out[MIN_RATE_TEXT_MAX])
{
	unsigned rate = (unsigned)smaller(thousandths, 9 * MIN_RATE_ONE);
	int n = snprintf(out, MIN_RATE_TEXT_MAX, "%u.%03u", rate / MIN_RATE_ONE,
			 rate % MIN_RATE_ONE);

	while (n > 3 && out[n - 1] == '0')
		out[--n] = '\0';
	return out;
}

void min_rate_set(struct min_rate *rate, uint32_t wanted)
{
	if (rate->wanted == wanted)
		return;
	*rate = (struct min_rate){.wanted = wanted,
				  .alone = rate->alone,
				  .lump = rate->lump,
				  .attained = MIN_RATE_UNKNOWN,
				  .time = rate->time,
				  .missed_time = rate->missed_time};
}

/* Credit that lets others run. Longer launches are reported in larger lumps, and are begun and
 * ended on different sides of a change. */
static uint64_t enough(const struct min_rate *rate)
{
	return larger(MIN_RATE_AHEAD_NS, MIN_RATE_LUMPS * rate->lump);
}

static bool is_settled(const struct min_rate *rate, const struct min_rate_use *use)
{
	uint64_t leaving = smaller(use->leaving, MIN_RATE_LEAVING_NS);

	return rate->owned >= larger(MIN_RATE_SETTLE_NS, leaving);
}

/* From one report of finished work to the next: others come back when work was reported, so the
 * time until the first one would be missing at the end. */
static void learn(struct min_rate *rate, const struct min_rate_use *use)
{
	bool settled = is_settled(rate, use);

	rate->owned = use->alone ? rate->owned + use->time : 0;
	if (!use->alone || !settled) {
		rate->begun = false;
		return;
	}
	rate->since += use->time;
	if (!use->work)
		return;
	rate->alone.work += rate->begun ? use->work : 0;
	rate->alone.time += rate->begun ? rate->since : 0;
	rate->begun = true;
	rate->since = 0;
	if (rate->alone.time >= MIN_RATE_FORGET_NS) {
		rate->alone.work /= 2;
		rate->alone.time /= 2;
	}
}

static bool is_known(const struct min_rate *rate)
{
	return rate->alone.time >= MIN_RATE_KNOWN_NS && rate->alone.work;
}

bool min_rate_learns(const struct min_rate *rate)
{
	return rate->wanted && !is_known(rate) && rate->tried < MIN_RATE_LEARN_NS;
}

/* How long the work takes alone. */
static uint64_t done(const struct min_rate *rate, uint64_t work)
{
	if (!is_known(rate))
		return 0;
	return smaller((uint64_t)((unsigned __int128)work * rate->alone.time / rate->alone.work),
		       WORK_MAX);
}

/* What to credit now. Alone it is as fast as alone, whatever it reports. Reports come late and the
 * speed varies, so only a quarter of what is above its minimum rate counts for certain. */
static uint64_t more(struct min_rate *rate, const struct min_rate_use *use, uint64_t done_now)
{
	if (!is_settled(rate, use)) {
		rate->turn = (typeof(rate->turn)){0};
		return done_now;
	}
	rate->turn.done += done_now;
	rate->turn.time += use->time;
	/* Others may have no work for weeks. */
	uint64_t least = (uint64_t)((unsigned __int128)rate->turn.time *
				    (MIN_RATE_ONE + 3 * rate->wanted) / (4 * MIN_RATE_ONE));
	uint64_t sum = larger(rate->turn.done, least), before = rate->turn.counted;
	rate->turn.counted = larger(sum, before);
	return rate->turn.counted - before;
}

static void decide(struct min_rate *rate, bool alone)
{
	int64_t most = (int64_t)enough(rate), least = -MIN_RATE_DEBT * most;
	bool unwanted = alone && rate->ahead;

	if (rate->credit < least)
		rate->credit = least;
	if (rate->credit > most + (int64_t)WORK_MAX)
		rate->credit = most + (int64_t)WORK_MAX;
	if (rate->credit <= 0)
		rate->ahead = false;
	else if (rate->credit >= most && rate->wanted < MIN_RATE_ONE)
		rate->ahead = true;
	/* What nobody else wanted is not owed to others. */
	if (unwanted || rate->wanted == MIN_RATE_ONE)
		rate->credit = rate->credit < most ? rate->credit : most;
}

static bool judge(struct min_rate *rate)
{
	bool missed = rate->missed;
	unsigned hindered = rate->hindered;

	if (rate->second.time < MIN_RATE_SECOND_NS)
		return false;
	rate->attained = is_known(rate) ? rate->second.done * MIN_RATE_ONE / rate->second.time
					: MIN_RATE_UNKNOWN;
	rate->missed = is_known(rate) ? rate->attained + MIN_RATE_SHORT < rate->wanted
				      : rate->second.hindered != 0;
	rate->hindered = rate->missed ? rate->second.hindered : 0;
	rate->missed_time += rate->missed ? rate->second.time : 0;
	rate->second = (typeof(rate->second)){0};
	return missed != rate->missed || hindered != rate->hindered;
}

bool min_rate_charge(struct min_rate *rate, const struct min_rate_use *use)
{
	struct min_rate_use now = *use;

	if (!rate->wanted)
		return false;
	now.work = smaller(now.work, WORK_MAX);
	now.time = smaller(now.time, WORK_MAX);
	uint64_t lump = now.work > now.time ? now.work - now.time : 0;
	rate->lump = larger(lump, rate->lump - rate->lump / 64);
	learn(rate, &now);
	uint64_t done_now = done(rate, now.work);
	uint64_t due = now.time * rate->wanted / MIN_RATE_ONE;
	rate->credit += (int64_t)more(rate, &now, done_now) - (int64_t)due;
	decide(rate, now.alone);
	rate->tried += now.alone && !is_known(rate) ? now.time : 0;
	rate->time += now.time;
	rate->second.done += done_now;
	rate->second.time += now.time;
	rate->second.hindered |= now.time ? now.hindered : 0;
	return judge(rate);
}

uint64_t min_rate_next(const struct min_rate *rate)
{
	if (!rate->ahead)
		return UINT64_MAX;
	return (uint64_t)rate->credit * MIN_RATE_ONE / rate->wanted;
}

const char *min_rate_why(unsigned hindered)
{
	if (hindered & MIN_RATE_ABOVE)
		return "higher-level clients have work";
	if (hindered & MIN_RATE_CROWDED)
		return "other containers on the GPU have minimum rates, and lack theirs, too";
	if (hindered & MIN_RATE_EQUALS)
		return "same-level clients have work, and a rate above the container's share does "
		       "not hold among those";
	return NULL;
}
