/* Finds out whether lower levels may leave less than the whole GPU to a client's work, at a bounded
 * cost for the client: of its launches at most NEED_BUDGET are tried with less, and what these lose
 * is at most NEED_BUDGET of the time of its work; the last try may end above that. It begins with
 * the whole GPU. The other ways are compared with that one by one, the cheapest for lower levels
 * first (need-compare.h), and the first that is as fast is chosen. A turn of that
 *
 *     rests      until it is paid for, and due;
 *     prepares   in the usual way: lower levels get ready, and work is measured;
 *     tries      the other way, and measures. It ends at once if that is clearly slower;
 *     returns    to the usual way: lower levels may have launched kernels that cannot leave, and
 *                what waits for them is paid for, too.
 *
 * A way that was chosen is checked now and then. Then the whole GPU is the other way, and costs the
 * client nothing. Pure: the caller has the clock. */
#pragma once

#include "gates/need-compare.h"
#include "gates/need-trial.h"

#define NEED_BUDGET 0.01

struct need_budget {
	double launches, ns;  /* that may be spent; below 0: debts */
	uint64_t tried, lost; /* launches, ns: spent so far */
};

enum need_phase {
	NEED_RESTS,
	NEED_PREPARES,
	NEED_TRIES,
	NEED_RETURNS,
};

struct need_probe {
	enum need_way usual; /* what launches ask for; NEED_WHOLE at first */
	bool settled;        /* that was measured, here or by an earlier process */
	enum need_way rival; /* is compared with the whole GPU */
	uint64_t due;        /* ns: no turn begins earlier */
	uint64_t rest;       /* ns that the last result holds for; 0: there was none */
	unsigned blind;      /* latest turns in a row in which nothing could be measured */
	double planned;      /* launches of a try; 0: not known */

	enum need_phase phase;
	uint64_t since;    /* ns, when it began */
	unsigned periods;  /* of the phase, so far */
	uint64_t counts;   /* ns, when its first period that counts ended; 0: none has */
	uint64_t launches; /* of those that count */
	double spent;      /* launches of this try */
	double before;     /* ns of a launch before it */
	struct need_compare compare;
};

/* The client's work from idle to idle. */
struct need_period {
	enum need_way way;     /* for which it asked */
	uint64_t launches, ns; /* ns for each launch */
};

/* @known: an earlier process has found @usual. */
void need_probe_begin(struct need_probe *probe, bool known, enum need_way usual, uint64_t now);
/* The way for which launches ask. */
enum need_way need_probe_way(const struct need_probe *probe);
/* Lower levels must be ready to leave a part of the GPU. */
bool need_probe_asks(const struct need_probe *probe);
/* Regularly. @company: lower levels have work; @able: the client's work may do with less. */
void need_probe_work(struct need_probe *probe, const struct need_budget *budget, bool company,
		     bool able, uint64_t now);
/* True: something was found: `usual` is settled. */
bool need_probe_learn(struct need_probe *probe, struct need_budget *budget,
		      const struct need_period *period, uint64_t now);
