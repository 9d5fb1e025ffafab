/* What the autotuner knows and works on. */
#pragma once

#include "autotune/constants.h"

#include "weir/base.h"
#include "weir/protocol.h"
#include "weir/tickets.h"
#include "weir/transform.h"

#define BUILDS_MAX 3 /* of a form: register budgets of the compiler (weir/transform.h) */

/* Which clients wait, or waited within the last seconds, for what runs on the GPU. */
enum waiting {
	WAITING_NOBODY,
	WAITING_SAME_LEVEL, /* clients of the same level, which only long kernels delay */
	WAITING_URGENT,     /* higher-level clients, or same-level ones that must not wait */
	WAITING_COUNT,
};

/* From the environment. */
struct autotune_settings {
	uint64_t latency;       /* ns from a demand until the kernel has left */
	bool latency_given;     /* by the user: max_blocking_time then does not count */
	enum weir_form forced;  /* WEIR_FORM_COUNT: none */
	uint32_t chunk;         /* blocks of a ticket; 0: not forced */
	uint32_t chain_unknown; /* continuations of a launch of unknown length */
};

/* The client's situation at one event. */
struct autotune_situation {
	uint64_t now; /* ns; the launch path may leave it 0 */
	enum waiting waiting;
	bool lowest_level;
	uint64_t max_blocking_time; /* ns that higher-level clients can wait for a kernel */
};

/* A launch that is about to be made. */
struct autotune_launch {
	uint64_t native; /* ns, predicted for the native kernel */
	/* Kernels shorter than this end about as soon as a gate would stop them: by the distance of
	 * gates while nobody waits, and while somebody does. */
	uint64_t short_alone, short_waited;
	bool overtaken; /* launches of those who wait start before this one's waiting blocks */
	/* Higher-level clients wait, but need only places of blocks that end. */
	bool places;
	bool above;       /* higher-level clients share the GPU, or did so lately, whether they wait
			     or not */
	uint64_t workers; /* that it may have; 0: not bounded */
};

/* A measured launch. */
struct autotune_sample {
	uint32_t candidate;
	uint64_t ns;    /* with its continuations, but for the first of a kernel that nobody knew */
	bool evicted;   /* the time includes others' */
	bool disturbed; /* gates were closed meanwhile */
	bool crowded;   /* others may have run at the same time and made it longer */
};

struct rewritten;

/* What the driver and the compile service say about a kernel. */
struct kernel_facts {
	uint32_t sms;
	uint32_t resident; /* native blocks on the GPU at once; 0: not known */
	bool is_straight;  /* its blocks never wait for each other */
	struct build_facts {
		uint32_t resident;    /* 0: the kernel cannot be launched in this build */
		uint64_t save_stride; /* bytes, resumable only; */
		uint32_t drain;       /* resumable only: weir_persistent.drain */
		uint32_t parts[WEIR_SM_RESOURCES]; /* of an SM, for a block (weir/protocol.h) */
	} builds[WEIR_FORM_COUNT][BUILDS_MAX];
	uint32_t kind;                     /* a number for kernel and geometry */
	const struct rewritten *rewritten; /* the code; opaque here */
	uint32_t hidden_at;                /* offset of the hidden parameter; */
	uint32_t symbols_size;             /* of the addresses behind it */
};

/* How to launch a kernel in a form. Immutable once published. */
struct launch_config {
	enum weir_form form;
	uint32_t build;
	const struct rewritten *rewritten;
	uint32_t hidden_at, packed_size; /* offset of the hidden parameter; size of all */
	/* Persistent and resumable: what all launches have in common. */
	struct weir_persistent hidden;
	uint32_t workers;
	uint32_t parts[WEIR_SM_RESOURCES]; /* of an SM, for a worker */
	enum weir_ticket_order order;
	bool refines; /* takes its tickets from the best of its form that was tried before */
	bool spatial; /* launches can leave a part of the SMs in time */
	/* Sliced: `step` blocks along `axis` at a time. */
	unsigned axis, step;
};

struct candidate {
	struct launch_config config;
	uint64_t times[SAMPLE_TIMES]; /* ns, the latest clean samples */
	unsigned clean;               /* samples that only the kernel itself determined */
	unsigned spoiled;             /* evicted or disturbed ones */
	uint64_t least_spoiled;       /* ns, without evicted ones; 0: none */
	double ratio;                 /* to the native time; infinite: not compared yet */
	bool confirming;              /* it was the best, and gets more samples */
};

enum autotune_state {
	AUTOTUNE_WANTED, /* the compiled forms are to come */
	AUTOTUNE_COMPARING,
	AUTOTUNE_SETTLED,
};

struct autotuner {
	const struct autotune_settings *settings;
	const char *name; /* of the kernel, for the log */

	/* Read by the launch path. Candidate 0 is the native kernel. */
	_Atomic uint32_t in_use[WAITING_COUNT]; /* candidate, by who waits */
	_Atomic uint32_t comparing;             /* launches alternate with native ones */
	_Atomic uint32_t compared;              /* launches while comparing */
	_Atomic int32_t form_grants;            /* launches that may be in the form */
	_Atomic int32_t native_grants; /* launches that must not, although somebody waits */
	_Atomic uint32_t chain;        /* continuations of a launch */
	_Atomic uint32_t refused;      /* the driver refused a launch in a form */
	_Atomic uint32_t short_blocks; /* native blocks end within the latency; */
	_Atomic uint32_t gives_places; /* within PLACE_NS */
	_Atomic uint32_t assumed;  /* nobody has measured the kernel: all launches are in a form */
	_Atomic double best_ratio; /* of the candidates in use; at most 1 */
	_Atomic int state;         /* enum autotune_state; the worker writes it */
	_Atomic uint64_t native;   /* ns; the worker writes it */

	/* Worker. */
	unsigned grid[3];
	uint32_t resident;      /* native blocks on the GPU at once */
	uint64_t evictions;     /* most of a launch, decaying, in sixteenths */
	unsigned chain_unsure;  /* launches left with the longest chain */
	uint64_t tuned_for;     /* ns, native time that the candidates suit; 0: none yet */
	unsigned outliers;      /* samples in a row that do not fit it; */
	uint64_t outlier_since; /* ns, the first of these */
	uint64_t native_at;     /* ns, when native_grants was last given */
	uint64_t seen_at;       /* ns, last sample */
	bool rechecked;         /* the candidate seemed hopeless and is compared once more */
	bool measured;          /* it was settled by a comparison, or because it is short */
	bool profiled;          /* by a profile */
	bool guessed;    /* `native` is the time of a launch in a form: none was native yet */
	bool goes_on;    /* the next candidates are compared with the native launches before them */
	size_t first, n; /* candidates of this round; of all rounds */
	uint32_t postponed; /* first candidate not tried because same-level clients wait; or 0 */
	struct candidate candidates[CANDIDATES_MAX];
};

/* Which clients wait for a kernel of @ns. */
static inline enum waiting waiting_for(enum waiting waiting, uint64_t ns)
{
	return waiting == WAITING_SAME_LEVEL && ns < LONG_KERNEL_NS ? WAITING_NOBODY : waiting;
}

static inline bool autotune_forces(const struct autotune_settings *settings)
{
	return settings->forced != WEIR_FORM_COUNT;
}

/* Some launches run in this candidate. */
static inline bool autotune_uses(const struct autotuner *tuner, uint32_t candidate)
{
	bool uses = false;

	for (size_t i = 0; i < WAITING_COUNT; i++)
		uses |= atomic_load(&tuner->in_use[i]) == candidate;
	return uses;
}

static inline bool autotune_uses_forms(const struct autotuner *tuner)
{
	bool uses = false;

	for (size_t i = 0; i < WAITING_COUNT; i++)
		uses |= atomic_load(&tuner->in_use[i]) != 0;
	return uses;
}

const char *form_name(enum weir_form form);
