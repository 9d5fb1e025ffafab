/* Which clients of a level run at the same time, and with how many workers on an SM each
 * (FlexSched).
 *
 * A turn begins with one client, the one that got least so far. It runs alone, so that its form is
 * found and its speed alone is measured. Then others join it one by one: first those that are known
 * to gain beside it, then those of which nothing is known. The numbers of workers are found by
 * trying (search.h) while all members work, and are remembered (memory.h). A client by which the
 * members lose more than it gains waits for its own turn. So where nothing gains, clients take
 * turns.
 *
 * A client's speed is the work that it reports as done, as time that its finished launches take
 * alone, in a ns. Its rate is its speed relative to its speed alone. Pure. */
#pragma once

#include "policy/coexec/search.h"
#include "policy/coexec/space.h"

/* All times are in ns of the level's clock, which stands while higher levels run. */

/* The bound of a client that runs alone while its form is looked for. More than fit on an SM, so
 * all of them run; but a client with a bound launches in its form. */
#define COEXEC_UNBOUNDED COEXEC_WORKERS

/* How long a turn of several clients is: the longest of these three. */
#define COEXEC_TURN    100000000ull
#define COEXEC_REPAYS  4u  /* times what the search for the set took (at most COEXEC_GIVE_UP) */
#define COEXEC_CHANGES 16u /* times the wait for the set's workers (at most COEXEC_LIMIT) */

/* Measurements */
#define COEXEC_WINDOW   30000000ull   /* one takes at least this long */
#define COEXEC_LONGEST  200000000ull  /* it, or the wait for it, ends after this time, */
#define COEXEC_LAUNCHES 4u            /* or after so many launches if that is later, */
#define COEXEC_LIMIT    2000000000ull /* but never later than this */

/* Searches */
#define COEXEC_GIVE_UP  5000000000ull /* the longest search */
#define COEXEC_EXPLORES 8u            /* 1/8 of the time may go to sets that seldom gain */
#define COEXEC_POOR     2u            /* tries without a gain, until another client is tried */

/* Members */
#define COEXEC_LOOK   5000000ull    /* between two looks for a client that may join */
#define COEXEC_LINGER 2000000ull    /* without work, until a client is no member any more */
#define COEXEC_GRACE  20000000ull   /* at most this, if it pauses: twice its `pause` */
#define COEXEC_SOLO   2000000000ull /* alone until a client's form is found, at most; */
#define COEXEC_CLOSED 300000000ull  /* at most this, if it has one or libweir looks for none */

/* Speed-ups: sums of the members' rates. */
#define COEXEC_GAIN    0.03 /* a set must gain so much more to be kept */
#define COEXEC_UNTRIED 1.2  /* expected of a pair that was not tried; */
#define COEXEC_ALIKE   1.04 /* of one whose kernels seem to wait for the same thing */
#define COEXEC_OFF     0.02 /* what a set gains is remembered again when it differs by more */
#define COEXEC_LOST    3u   /* measurements in a row with a loss end a set */

struct run_queue_entry;

/* Of a client, in its run_queue_entry. */
struct coexec_client {
	/* The caller's. */
	struct coexec_kernel kernel;
	/* ns of work done, and of all launches, as it takes alone. The difference is queued.
	 * Not run_queue_entry.remaining: that falls as if nothing ran beside the client. */
	uint64_t executed, launched;
	bool tuning; /* its form is not found yet */

	uint32_t workers; /* that it may have on an SM; 0: not bounded */
	bool runs;        /* a member, or of a member's container; else it waits */

	/* Internal. */
	bool together;       /* it is a member */
	uint64_t of;         /* number of the kernel that the fields below describe */
	bool measured;       /* `alone` is this kernel's speed */
	bool known;          /* `alone` is the speed of this kernel or of an earlier one */
	double alone;        /* its speed alone, ns of work in a ns; 0: it reported nothing */
	uint64_t served;     /* virtual time that it was charged */
	uint64_t pause;      /* ns, the longest of its latest times without work */
	uint64_t solo_since; /* when the search for its form began; 0: not yet */
	bool formed;         /* that has ended; its speed alone is measured without the form */
	uint64_t refused;    /* the plan's `sets` when it was refused the last time */
	uint64_t settles;    /* from this value of `executed` on launches have their workers */
	uint64_t changes_at; /* until then it has `former` workers; 0: it has those of `now` */
	uint8_t former;
	/* Of a measurement: `executed` at the latest look, and at the first and the last end of a
	 * launch, with their times. 0: there was none. */
	uint64_t seen, first, last, first_at, last_at;
};

enum coexec_phase {
	COEXEC_SETTLING,  /* launches with former workers are to end */
	COEXEC_MEASURING, /* speeds are measured */
};

/* Of a level's run queue. Zero: nobody runs. */
struct coexec_plan {
	struct run_queue_entry *members[COEXEC_MOST];
	uint64_t numbers[COEXEC_MOST]; /* their kernels */
	unsigned n;
	struct coexec_configuration now, before; /* before: the last member joined */
	double speed_up;                         /* of the members; 1: there is one */
	struct coexec_space space;
	struct coexec_search search;
	bool searching;
	bool corrects; /* `search` is that of the members, whose best configuration is in use */
	bool shrunk;   /* a member has left */
	enum coexec_phase phase;
	unsigned lost;                   /* measurements in a row with a loss */
	uint64_t since;                  /* of the phase */
	uint64_t turn_since;             /* these members run */
	uint64_t service;                /* each client with work got at least so much */
	uint64_t looked;                 /* when a client to join was last looked for */
	uint64_t sets;                   /* counter of sets that were found or ended */
	uint64_t searches;               /* counter */
	uint64_t search_since, searched; /* the last search: its begin, and how long it took */
	uint64_t changed_in;             /* ns until launches had the members' workers */
	uint64_t idle_since;             /* since when no client has work; 0: one has */
	uint64_t begun;    /* what COEXEC_EXPLORES counts from: the first turn, or later */
	uint64_t explored; /* ns since then of searches for sets that seldom gain */
};
