/* Which clients of a level run at the same time, and with how many workers on an SM each
 * (FlexSched).
 *
 * One client begins, the one that got least so far. Alone it shows which kernel it has, in its
 * form, and how fast that gets on without. Then others join it one by one: first those that are
 * known to go well with it, then those of which nothing is known. How many workers each gets is
 * found by trying (search.h) while all of them work. The result is remembered
 * (memory.h). A client that makes the others' loss greater than its own gain waits for its
 * turn: so where nothing goes together clients take turns.
 *
 * Speed is what a client reports as done (the time that its finished launches take alone) in a
 * while, relative to the same while it was alone. Pure. */
#pragma once

#include "policy/coexec/search.h"
#include "policy/coexec/space.h"

/* All times are in ns of the level's clock, which stands while higher levels run. */
#define COEXEC_UNBOUNDED COEXEC_WORKERS /* more than fit; but launches are in a form */
#define COEXEC_TURN      100000000ull   /* of several, then those that got less have theirs; */
#define COEXEC_REPAYS    4u             /* or so many times what the search for it took, */
#define COEXEC_CHANGES   16u            /* or the time until launches had its workers */
#define COEXEC_EXPLORES  8u             /* of the time such a part may go to adding to a set */
#define COEXEC_WINDOW    30000000ull    /* a measurement, at least */
#define COEXEC_LONGEST   200000000ull   /* a measurement, or the wait for it, at most; */
#define COEXEC_LAUNCHES  4u             /* or so many launches of the longest, */
#define COEXEC_LIMIT     2000000000ull  /* but no more than that */
#define COEXEC_GIVE_UP   5000000000ull  /* a search, at most, and the turn that repays it */
#define COEXEC_LOOK      5000000ull     /* between two looks for one that may join */
#define COEXEC_LINGER    2000000ull     /* without work, then a client has left the others; */
#define COEXEC_GRACE     20000000ull    /* or twice its `pause`, but at most so long */
#define COEXEC_SOLO      2000000000ull  /* in which a client's forms are found, at most; */
#define COEXEC_CLOSED    300000000ull   /* or so long, if it has one, or none is to come */
#define COEXEC_GAIN      0.03           /* of all together: less is not worth it */
#define COEXEC_SAMPLES   8              /* the mean of the latest is what a set gains; */
#define COEXEC_OFF       0.02           /* it is remembered if it differs by more */
#define COEXEC_HOPE      1.2            /* the speed-up of a pair that was not tried; */
#define COEXEC_ALIKE     1.04           /* of one that seems to wait for the same thing */
#define COEXEC_LOST      3u             /* measurements in a row that show a loss */

struct run_queue_entry;

/* Of a client, in its run_queue_entry. */
struct coexec_client {
	/* The caller's. */
	struct coexec_kernel kernel;
	/* ns of work done, and of all launches, as it takes alone. The difference is queued.
	 * Not run_queue_entry.remaining: that falls as if nothing ran beside the client. */
	uint64_t executed, launched;
	bool tuning; /* its forms are not settled */

	uint32_t workers; /* that it may have on an SM; 0: not bounded */
	bool runs;        /* with others or alone; else it waits */

	/* Internal. */
	bool together;       /* it is a member */
	uint64_t of;         /* number of the kernel that the fields below describe */
	bool measured;       /* `alone` is the speed of this kernel; */
	bool known;          /* of this one or an earlier one */
	double alone;        /* ns of work in a ns; 0: it reported nothing */
	uint64_t served;     /* ns that it was charged, by weight */
	uint64_t pause;      /* ns without work, until it has some again; the longest lately */
	uint64_t solo_since; /* its forms are looked for; 0: not yet */
	bool formed;         /* they are found; then it shows its speed alone, without them */
	uint64_t refused;    /* the plan's `sets` when it was tried in vain */
	uint64_t settles;    /* `executed` from when the configuration holds */
	uint64_t changes_at; /* until then it keeps `former` workers; 0: it has those of `now` */
	uint8_t former;
	uint64_t seen, first_at, last_at, first, last; /* ends of launches in a measurement */
};

enum coexec_phase { COEXEC_SETTLING, COEXEC_MEASURING };

/* Of a level's run queue. Zero: nobody runs. */
struct coexec_plan {
	struct run_queue_entry *members[COEXEC_MOST];
	uint64_t numbers[COEXEC_MOST]; /* their kernels */
	unsigned n;
	struct coexec_configuration now, before; /* the last one joined */
	double speed_up;                         /* found for the members; 1: one */
	struct coexec_space space;
	struct coexec_search search;
	bool searching;
	bool shrunk; /* a member has left */
	enum coexec_phase phase;
	unsigned lost;
	uint64_t since;                  /* of the phase */
	uint64_t turn_since;             /* the members run */
	uint64_t service;                /* that each client with work got, at least */
	uint64_t looked;                 /* for one that may join */
	uint64_t sets;                   /* counts the sets of members that were settled */
	uint64_t searches;               /* counter */
	uint64_t search_since, searched; /* the last search: its begin, and how long it took */
	uint64_t changed_in;             /* ns until launches had the members' workers */
	uint64_t idle_since;             /* no client has had work; 0: some has */
	uint64_t begun, explored; /* first turn, or later; ns of searches that were unlikely */
};
