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
				  .renewable = rate->renewable,
				  .time = rate->time,
				  .missed_time = rate->missed_time};
}

/* ns of credit that lets others run for a part of each of its short busy periods; 0: they are too
 * long. Each time that others come and leave costs something. */
static uint64_t of_busy_period(const struct min_rate *rate)
{
	uint64_t spare = rate->busy * (MIN_RATE_ONE - rate->wanted) / MIN_RATE_ONE;

	if (!rate->busy || spare >= MIN_RATE_AHEAD_NS)
		return 0;
	uint64_t lump = smaller(rate->lump, rate->busy / MIN_RATE_PART);
	uint64_t least = larger(MIN_RATE_LEAST_NS, rate->leaving / 4);

	return larger(larger(spare, lump), least);
}

/* Credit that lets others run. Longer launches are reported in larger lumps, and are begun and
 * ended on different sides of a change. */
static uint64_t enough(const struct min_rate *rate)
{
	uint64_t lumps = smaller(MIN_RATE_LUMPS * rate->lump, MIN_RATE_LUMPS_NS);
	uint64_t spare = of_busy_period(rate);

	return spare ? spare : larger(MIN_RATE_AHEAD_NS, larger(lumps, rate->lump));
}

/* Little is saved up in busy periods for later ones: these would be slower than they need be. */
static uint64_t spare(const struct min_rate *rate)
{
	uint64_t least = of_busy_period(rate);

	return least ? larger(least, smaller(least << rate->room, MIN_RATE_AHEAD_NS))
		     : MIN_RATE_SPARE * enough(rate);
}

/* A program whose processor keeps the GPU busy for a part of the time catches up when others have
 * left. All that it is faster then would be forgotten, and others would seldom come. */
static void adapt(struct min_rate *rate, uint64_t done, uint64_t time)
{
	if (min_rate_must_be_alone(rate))
		return;
	rate->window.done += done;
	rate->window.time += time;
	if (rate->window.time < MIN_RATE_WINDOW_NS)
		return;
	uint64_t attained = rate->window.done * MIN_RATE_ONE / rate->window.time;
	uint64_t fast = MIN_RATE_ONE - (MIN_RATE_ONE - rate->wanted) / MIN_RATE_FAST;

	if (attained >= fast && rate->room < MIN_RATE_ROOM)
		rate->room++;
	else if (attained < rate->wanted + MIN_RATE_SHORT && rate->room)
		rate->room--;
	rate->window.done = rate->window.time = 0;
}

static bool is_settled(const struct min_rate *rate)
{
	uint64_t until = larger(MIN_RATE_SETTLE_NS, smaller(rate->leaving, MIN_RATE_LEAVING_NS));

	if (of_busy_period(rate))
		until = smaller(until, rate->busy / MIN_RATE_PART);
	return rate->owned >= until;
}

/* One of two speeds is more than half as high again as the other. */
static bool is_far(const struct min_rate *rate)
{
	unsigned __int128 latest = (unsigned __int128)rate->latest.work * rate->alone.time;
	unsigned __int128 known = (unsigned __int128)rate->alone.work * rate->latest.time;

	return 2 * latest > 3 * known || 2 * known > 3 * latest;
}

/* Another program, or another kind of work, may differ by much in how busy it keeps the GPU. What
 * was learned before says nothing of it. */
static void compare(struct min_rate *rate, uint64_t work, uint64_t time)
{
	rate->latest.work += work;
	rate->latest.time += time;
	if (rate->latest.time < MIN_RATE_LATEST_NS)
		return;
	if (is_far(rate)) {
		rate->alone = rate->latest;
		rate->stale = MIN_RATE_STALE_NS;
	}
	rate->latest = (struct min_rate_speed){0};
}

static void learn_from(struct min_rate *rate, uint64_t work, uint64_t time)
{
	rate->alone.work += work;
	rate->alone.time += time;
	rate->stale -= smaller(rate->stale, MIN_RATE_LEARNT * time);
	compare(rate, work, time);
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

bool min_rate_must_be_alone(const struct min_rate *rate)
{
	return rate->learns || min_rate_learns(rate);
}

/* Kernels that others run before a request delay its beginning. Such a period may show that the
 * speed has changed, but it is no measurement of the speed alone. */
static void end_period(struct min_rate *rate)
{
	bool alone = rate->period.shared <= rate->period.time / MIN_RATE_SHARED;

	if (alone && rate->period.work && rate->period.kept)
		learn_from(rate, rate->period.work, rate->period.time);
	else if (alone && rate->period.work)
		compare(rate, rate->period.work, rate->period.time);
	rate->period = (typeof(rate->period)){0};
}

/* Work is reported late, the last of a busy period while it is idle again. So whole periods count,
 * with what is reported until the next one begins, or ones so long that this does not matter. */
static void learn_from_period(struct min_rate *rate, const struct min_rate_use *use)
{
	if (rate->period.over && use->time)
		end_period(rate);
	if (!rate->period.time)
		rate->period.kept = min_rate_must_be_alone(rate);
	rate->period.work += use->work;
	rate->period.time += use->time;
	rate->period.shared += use->alone ? 0 : use->time;
	rate->period.over = !use->works;
	if (use->works && rate->period.time >= MIN_RATE_LEAVING_NS)
		end_period(rate);
}

/* From one report of finished work to the next: others come back when work was reported, so the
 * time until the first one would be missing at the end. */
static void learn_from_reports(struct min_rate *rate, const struct min_rate_use *use, bool settled)
{
	if (!use->alone || !settled) {
		rate->begun = false;
		return;
	}
	rate->since += use->time;
	if (!use->work)
		return;
	if (rate->begun)
		learn_from(rate, use->work, rate->since);
	rate->begun = true;
	rate->since = 0;
}

/* What was learned before counts as much as what is learned next. */
static void forget(struct min_rate *rate)
{
	struct min_rate_speed *alone = &rate->alone;

	if (alone->time <= MIN_RATE_KNOWN_NS)
		return;
	alone->work = (uint64_t)((unsigned __int128)alone->work * MIN_RATE_KNOWN_NS / alone->time);
	alone->time = MIN_RATE_KNOWN_NS;
}

/* Others run in most short busy periods, or all the time if it is fast enough beside them. So
 * sometimes they must not. */
static void age(struct min_rate *rate, uint64_t time)
{
	bool learnt = rate->learns && rate->stale < MIN_RATE_STALE_NS / 2;
	bool given_up = rate->stale >= MIN_RATE_STALE_NS + MIN_RATE_LEARN_NS;

	rate->stale = learnt || given_up ? 0 : rate->stale + time;
	bool before = rate->learns;

	rate->learns = rate->stale >= (before ? MIN_RATE_STALE_NS / 2 : MIN_RATE_STALE_NS);
	if (rate->learns && !before)
		forget(rate);
}

static void learn(struct min_rate *rate, const struct min_rate_use *use)
{
	bool settled = is_settled(rate);

	rate->owned = use->alone ? rate->owned + use->time : 0;
	if (of_busy_period(rate)) {
		learn_from_period(rate, use);
	} else {
		rate->period = (typeof(rate->period)){0};
		learn_from_reports(rate, use, settled);
	}
	age(rate, use->time);
}

bool min_rate_answers(const struct min_rate *rate)
{
	return of_busy_period(rate) != 0;
}

/* How long the work takes alone. */
static uint64_t done(const struct min_rate *rate, uint64_t work)
{
	if (!is_known(rate))
		return 0;
	return smaller((uint64_t)((unsigned __int128)work * rate->alone.time / rate->alone.work),
		       WORK_MAX);
}

/* Work to credit now: what the client reports. While it runs alone it is as fast as alone by
 * definition, but reports come late and the speed varies. So its minimum rate and a quarter of what
 * is above it are always credited. Reported work beyond that is kept for later. */
static uint64_t more(struct min_rate *rate, const struct min_rate_use *use, uint64_t done_now)
{
	uint64_t quarter = (uint64_t)((unsigned __int128)use->time *
				      (MIN_RATE_ONE + 3 * rate->wanted) / (4 * MIN_RATE_ONE));
	uint64_t least = is_settled(rate) ? quarter : 0, known = rate->reserve + done_now;

	rate->reserve = known > least ? smaller(known - least, MIN_RATE_RESERVE_NS) : 0;
	return known < least ? done_now + least - known : done_now;
}

/* Each time that others come and leave costs it something. So they come between two requests and
 * stay for a part of the next one, but not in the middle of a request that is as short as any. */
static bool has_enough(const struct min_rate *rate, bool works)
{
	int64_t most = (int64_t)enough(rate);

	if (rate->wanted == MIN_RATE_ONE || rate->learns)
		return false;
	if (of_busy_period(rate) && !works)
		return rate->credit >= (int64_t)smaller((uint64_t)most, MIN_RATE_LEAST_NS) / 2;
	return rate->credit >= most && (!of_busy_period(rate) || rate->lasts > rate->busy);
}

static void decide(struct min_rate *rate, bool alone, bool works)
{
	int64_t most = (int64_t)enough(rate), spared = (int64_t)spare(rate);
	int64_t least = -MIN_RATE_DEBT * (int64_t)larger((uint64_t)most, MIN_RATE_AHEAD_NS);
	bool unwanted = alone && rate->ahead;

	if (rate->credit < least)
		rate->credit = least;
	if (rate->credit > spared)
		rate->credit = spared;
	if (rate->credit <= 0 || (rate->learns && !alone))
		rate->ahead = false;
	else if (has_enough(rate, works))
		rate->ahead = true;
	/* What nobody else wanted is not owed to others. */
	if (unwanted || rate->wanted == MIN_RATE_ONE)
		rate->credit = rate->credit < most ? rate->credit : most;
}

static void learn_anew(struct min_rate *rate)
{
	rate->alone = (struct min_rate_speed){0};
	rate->latest = (struct min_rate_speed){0};
	rate->tried = 0;
	rate->room = 0;
}

/* Nobody is faster beside others than alone. If it seems so, what is known is wrong. */
static void doubt(struct min_rate *rate)
{
	if (is_known(rate) && rate->attained >= MIN_RATE_DOUBT)
		learn_anew(rate);
}

/* Another program runs: its speed is not known. A container that begins programs all the time must
 * not keep others out by being measured, so this happens only so often. */
static void renew(struct min_rate *rate)
{
	if (rate->time < rate->renewable)
		return;
	rate->renewable = rate->time + MIN_RATE_RENEW_NS;
	learn_anew(rate);
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
	doubt(rate);
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
	rate->lasts = smaller(rate->lasts + now.time, MIN_RATE_LEAVING_NS);
	if (now.works || now.time)
		rate->busy = larger(rate->lasts, now.busy) < MIN_RATE_LEAVING_NS ? now.busy : 0;
	rate->lasts = now.works ? rate->lasts : 0;
	rate->leaving = now.leaving;
	if (now.begins)
		renew(rate);
	learn(rate, &now);
	uint64_t done_now = done(rate, now.work);
	uint64_t margin =
		smaller((MIN_RATE_ONE - rate->wanted) / MIN_RATE_MARGIN, MIN_RATE_MARGIN_MOST);
	uint64_t due = now.time * (rate->wanted + margin) / MIN_RATE_ONE;
	adapt(rate, done_now, now.time);
	rate->credit += (int64_t)more(rate, &now, done_now) - (int64_t)due;
	decide(rate, now.alone, now.works);
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
