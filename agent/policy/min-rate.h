/* A minimum rate (weir.dev/min-rate): a container keeps at least such a part of the speed that it
 * has alone. Others get what is left. Pure.
 *
 * The rate of work is what clients report as finished (`executed` of the status page) for each ns
 * with work outstanding. The rate alone is learned whenever nobody else runs, so it follows the
 * clock and the program. The container's credit is the work by which it is ahead of its minimum
 * rate. While it has none, others must not run: then it gains credit, as it is faster than it must
 * be. When it has enough, it is ahead, and others may run until the credit is used up. How much
 * slower it is beside them needs no model: slower work uses the credit up sooner.
 *
 * How much is enough decides how long others run at a time. A container that answers requests waits
 * for each of them, so others get a part of each request (MIN_RATE_LEAST_NS to MIN_RATE_AHEAD_NS)
 * instead of all of one request in ten. They come when it is idle, and stay for the beginning of
 * its next request. Now and then they leave it a few requests alone, so that it learns its speed.
 *
 * Reports are not trusted. Whatever the container reports, it counts as faster than its minimum
 * rate while it is alone, so others always get about a quarter of their part at least. But reports
 * are late, and a program may be slow for a while by itself: what was reported beyond that lately
 * (MIN_RATE_RESERVE_NS) makes up for such times first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIN_RATE_ONE      1000u /* rates are in thousandths */
#define MIN_RATE_EXPECTED "a number above 0 and at most 1, with up to three decimals"
#define MIN_RATE_TEXT_MAX 8
#define MIN_RATE_NO_CAUSE "others keep slowing it down, or its work is too short to be measured"
#define MIN_RATE_UNKNOWN  UINT64_MAX

#define MIN_RATE_AHEAD_NS    5000000ull /* credit that lets others run */
#define MIN_RATE_LEAST_NS    200000ull  /* at least, if its busy periods are short */
#define MIN_RATE_LUMPS       4 /* or so much as this many of its launches, if that is more, */
#define MIN_RATE_LUMPS_NS    50000000ull  /* but not more than this, or one launch */
#define MIN_RATE_SPARE       2            /* times that: what it has beyond it is forgotten, */
#define MIN_RATE_DEBT        4            /* and what is missing beyond that */
#define MIN_RATE_MARGIN      10u          /* a part of what is left to others: it gets that more, */
#define MIN_RATE_MARGIN_MOST 5u           /* but not more than so many thousandths */
#define MIN_RATE_SETTLE_NS   3000000ull   /* until others have left: not counted as alone */
#define MIN_RATE_LEAVING_NS  50000000ull  /* or for so long, if others' launches are longer; */
#define MIN_RATE_PART        4            /* no more than this part of a short busy period */
#define MIN_RATE_KNOWN_NS    20000000ull  /* alone, until the rate alone is known */
#define MIN_RATE_LEARN_NS    200000000ull /* alone, for that: it is given up then */
#define MIN_RATE_FORGET_NS   1000000000ull /* alone, until earlier work counts half */
#define MIN_RATE_LATEST_NS   40000000ull   /* alone: then the latest is compared with the earlier */
#define MIN_RATE_RESERVE_NS  100000000ull  /* of reported work: covers so much of a slow time */
#define MIN_RATE_STALE_NS    2000000000ull /* with work: then it must be alone to learn again */
#define MIN_RATE_LEARNT      50u           /* times what it learned from makes up for that */
#define MIN_RATE_SHARED      16u           /* at most this part of a period is not alone */
#define MIN_RATE_SECOND_NS   1000000000ull /* with work: then it is judged */
#define MIN_RATE_RENEW_NS    1000000000ull /* with work, from one other program to the next */
#define MIN_RATE_DOUBT       1250u         /* thousandths in a second: then it learns again */
#define MIN_RATE_WINDOW_NS   100000000ull  /* with work: then it is judged how much it may save, */
#define MIN_RATE_FAST        4u  /* more, if it is slowed down by such a part of what it may; */
#define MIN_RATE_ROOM        6   /* it doubles so often at most */
#define MIN_RATE_SHORT       20u /* thousandths: it is missed if it falls short by more */

/* Why a container may not have its minimum rate. Bits. */
enum min_rate_hindrance {
	MIN_RATE_CROWDED = 1u << 0, /* others with minimum rates lack theirs, too */
	MIN_RATE_ABOVE = 1u << 1,   /* higher levels have work */
	MIN_RATE_EQUALS = 1u << 2,  /* same-level clients have work, and it is above its share */
};

struct min_rate_speed {
	uint64_t work, time; /* ns */
};

/* Zero: no minimum. */
struct min_rate {
	uint32_t wanted;    /* thousandths; 0: none */
	bool ahead;         /* others may run */
	int64_t credit;     /* ns of work at its speed alone */
	uint64_t lump;      /* ns of work that are reported at once, lately */
	uint64_t busy;      /* ns of its short busy periods; 0: not known, or this one is long */
	uint64_t lasts;     /* ns with work since it was last seen without */
	uint64_t leaving;   /* ns that others need to leave */
	uint64_t owned;     /* ns since nobody else may run */
	uint64_t stale;     /* ns with work since its speed alone was learned */
	bool learns;        /* again: others wait */
	bool begun;         /* and some of the work of that time was reported */
	uint64_t since;     /* ns since the last such report */
	uint64_t tried;     /* ns alone while its speed alone was not known */
	uint64_t renewable; /* ns, `time` from which on another program may begin */
	struct min_rate_speed alone;
	struct min_rate_speed latest; /* of that, the latest part */
	struct {
		uint64_t work, time, shared; /* ns; not alone */
		bool over;                   /* what was its last work is still reported */
		bool kept;                   /* others were held before it, too */
	} period;                            /* the latest short busy period */
	uint64_t reserve;                    /* ns of reported work beyond what is certain alone */
	struct {
		uint64_t done, time; /* ns */
	} window;
	unsigned room; /* what short busy periods save up is doubled so often */
	struct {
		uint64_t done, time; /* ns */
		unsigned hindered;
	} second;
	/* Of the last second with work; MIN_RATE_UNKNOWN: the speed alone is not known, or there
	 * was no such second. */
	uint64_t attained;
	bool missed;
	unsigned hindered;
	/* Counters, in ns: with work; in seconds in which it was missed. */
	uint64_t time, missed_time;
};

/* Since the last call. */
struct min_rate_use {
	uint64_t time;     /* ns with work outstanding */
	uint64_t work;     /* ns of GPU time, finished */
	bool alone;        /* nobody else could run */
	uint64_t leaving;  /* ns that others' launches take to end, if they can only end */
	uint64_t busy;     /* ns of its short busy periods, if it has work; 0: not known */
	bool works;        /* it has work now */
	bool begins;       /* a client of it reports for the first time */
	unsigned hindered; /* enum min_rate_hindrance */
};

/* In thousandths. False: @text is none. */
bool min_rate_parse(const char *text, uint32_t *out);
/* As min_rate_parse() takes it. Returns @out. */
const char *min_rate_format(uint64_t thousandths, char out[MIN_RATE_TEXT_MAX]);

/* @wanted: 0: none. A new one begins without credit, and keeps the rate alone. */
void min_rate_set(struct min_rate *rate, uint32_t wanted);
/* Counts @use: `ahead` is right afterwards. True: `missed` or why has changed. */
bool min_rate_charge(struct min_rate *rate, const struct min_rate_use *use);
/* It must be alone to learn its speed alone: others with minimum rates wait for that. */
bool min_rate_learns(const struct min_rate *rate);
/* It learns its speed alone now, for the first time or again. */
bool min_rate_must_be_alone(const struct min_rate *rate);
/* It answers requests: its busy periods are short. */
bool min_rate_answers(const struct min_rate *rate);
/* ns until it may not be ahead any more. UINT64_MAX: it is not ahead. Then look at steady times:
 * looks that follow reports make it seem faster. */
uint64_t min_rate_next(const struct min_rate *rate);
/* Why it is missed, or may be, in words. NULL: nothing is known to hinder it. */
const char *min_rate_why(unsigned hindered);
