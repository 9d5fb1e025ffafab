/* The way in which lower levels make room for work of a higher-level client (need-trial.h): for
 * each kernel of few blocks, and for the work of clients whose kernels have many. Beside kernels
 * that keep the GPU's memory busy the whole GPU is faster for many; beside others some SMs are, or
 * places of blocks that end. So the answer is kept for a kernel beside a company: the lower-level
 * clients that have work, which the agent tells (struct weir_control_page). It is measured when the
 * kernel comes into a new company, and again after a rest. Until the agent has told that somebody
 * works below again, the last company counts. A kernel that cannot be measured, because other work
 * needs more anyway, keeps its usual way.
 *
 * Nothing is measured while nobody below has work; a comparison goes on when the same company is
 * back, as each may work for less time than a comparison takes. Nor is anything measured of a
 * client whose work never ends: it would keep what it asked for last. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "gates/need-trial.h"

#define NEED_CHOICES    64u /* kernels beside a company; newer ones overwrite older ones */
#define NEED_PERIOD_MAX (100 * NS_PER_MS) /* longer work of many blocks gets the whole GPU */

struct need_choices {
	/* A kernel beside a company, and its way in the lowest bits; 0: none. */
	_Atomic uint64_t chosen[NEED_CHOICES];
	/* The kernel launched last since the last look, and its usual way in the lowest bits; 0:
	 * none. */
	_Atomic uint64_t wanted;
	/* Of the latest launch of many blocks since the client's work began: 1 + its way; 0: there
	 * was none. */
	_Atomic int many;
	_Atomic uint64_t begun; /* launches before that */
	/* ns of that work for each of its launches, and its way in the lowest bits; 0: none has
	 * ended since the last look. */
	_Atomic uint64_t period;
	_Atomic uint32_t company;  /* the last one that the agent has told; 0: none */
	_Atomic uint64_t tried;    /* the kernel that is measured; 0: none */
	_Atomic int way;           /* in which that is launched, */
	_Atomic uint32_t launches; /* so often; */
	_Atomic int measures;      /* these launches count now */
	_Atomic uint64_t idled;    /* times that the client's work has ended */

	/* Worker. */
	uint64_t due[NEED_CHOICES];  /* ns, when each choice is measured again */
	uint64_t rest[NEED_CHOICES]; /* ns: of these, between two measurements */
	struct need_trial trial;
	enum need_way usual;    /* of what is tried */
	uint64_t many_at;       /* ns, when a launch of many blocks was last seen */
	uint32_t beside;        /* the company of the trial */
	uint64_t from;          /* ns, when launches in the way count at the earliest */
	uint64_t next, until;   /* ns: the next trial; when this one has failed */
	uint64_t seen, idle_at; /* of `idled`; ns, when it was last seen to grow */
};
PER_CLIENT(need_choices)

/* A kernel: what is compared. Not 0; the lowest bits are. */
static inline uint64_t need_kernel(uint64_t key)
{
	return (key & ~15ull) | 16u;
}

/* Launch path, off the usual way. @key: kernel_key(). @usual: the way that the kernel's length and
 * blocks suggest. */
enum need_way need_way_of(struct client *client, const struct level_binding *binding, uint64_t key,
			  enum need_way usual);
/* The same for a launch of many blocks. What counts is how long the client's work takes from idle
 * to idle: on a part of the SMs a kernel is slower, but the next one may not have been launched
 * yet. */
enum need_way need_way_of_many(struct client *client, const struct level_binding *binding);
/* That of work with such launches: others of it need no more either. NEED_WHOLE: there is none. */
enum need_way need_way_beside_many(struct client *client, const struct level_binding *binding);
/* Launch path: this launch is to be measured, from before its client shows demand. Otherwise lower
 * levels would leave while the event is recorded, and that time would not count. */
static inline bool need_is_measured(const struct client *client, uint64_t key)
{
	const struct need_choices *choices = need_choices_of(client);

	return load_relaxed(&choices->measures) &&
	       load_relaxed(&choices->tried) == need_kernel(key);
}

/* Worker: a launch of that kernel took @ns; the client asked for @way. */
void need_learn(struct client *client, uint64_t key, enum need_way way, uint64_t ns);

/* Any thread: the client's work took @ns, and is done; 0: not known. @whole: something of it asked
 * for the whole GPU. */
void need_learn_period(struct client *client, bool whole, uint64_t ns);

/* Columns of the table. */
void need_choice_work(struct client *client, struct tick *tick);
