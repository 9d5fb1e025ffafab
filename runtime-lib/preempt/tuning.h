/* In which form a kernel runs, by measurement: one tuned for each kernel and geometry that takes
 * longer natively than those above should have to wait.
 *
 * A launch that has run so long and goes on is enough: the worker asks for the kernel's rewriting
 * at once. Then it lets candidates run in turn with the native kernel, both sampled, the cheapest
 * form first that leaves soon enough. Medians of the same time are compared, as a kernel may have
 * more to do today than yesterday. A candidate that is more than 2 % slower is out; one that is
 * much slower in its first launch is out at once, so nobody waits for more than that one. The
 * fastest of the others is compared once more, for longer, and stays if it is not out then; if
 * there is none, the kernel runs as it is. Of long kernels fewer samples decide. If one takes
 * another time later on, the tuned is made anew. The launch path reads which candidate is on.
 *
 * While somebody waits for the GPU, or did so of late, a native launch is what he waits for. So
 * then the first candidate is in use from its first launch on, and all that runs natively is a
 * launch now and then until there are enough to compare; and it may cost more: a form that is too
 * slow for all days is in use as long as somebody waits, if it is not much slower. For those above
 * it is the one that leaves soonest; for equals the one with which turns cost least, as may be long
 * slices: these are the first to be tried if nobody but equals waits, and as soon as these do and
 * one is good enough the others are tried when that is over.
 *
 * Where the work of all above takes long, they hardly notice a longer wait (patience in
 * weir/protocol.h). As long as that is so, kernels no longer than that run as they are, whatever
 * was chosen, and for those that are new nothing is. Not so while equals are not to wait; nor if
 * the user has said what is long.
 *
 * Others that run meanwhile make a launch longer, never shorter. A sample during which gates were
 * closed is none but for want of others, and then the least of them counts. */
#pragma once

#include "preempt/function.h"
#include "measure/kernel.h"
#include "launch/priority.h"
#include "measure/sample.h"

#include "weir/tickets.h"

#define TUNED_KERNELS_MAX 2048
#define CANDIDATES_MAX    24 /* the native one, and those of all times that a tuned was made */
#define TRIAL_TIMES       16 /* samples of a candidate that are kept */

/* How to launch a kernel in a form. Immutable once published. */
struct launch_config {
	enum weir_form form; /* WEIR_NATIVE: as it is */
	uint32_t build;      /* of the form */
	const struct rewritten *rewritten;
	uint32_t hidden_at;   /* offset of the hidden parameter; */
	uint32_t packed_size; /* all parameters */
	/* Persistent and resumable: what is the same in all launches. */
	struct weir_persistent hidden;
	uint32_t workers;
	enum weir_ticket_order order;
	bool refines; /* the best of those of its form that were tried before it */
	/* Sliced: along this axis, so much of it at a time. */
	unsigned axis, step;
};

struct candidate {
	struct launch_config config;
	uint64_t times[TRIAL_TIMES]; /* ns, of the last samples with nothing else in them */
	unsigned clean;              /* such samples */
	unsigned dirty;              /* and those that were evicted, or disturbed by others; */
	uint64_t least;              /* ns: of the latter the least; 0: there is none */
	double ratio;                /* to the native kernel; infinite: not compared yet */
	bool again;                  /* it was the best, and is tried with more samples */
};

enum tuning_state {
	TUNING_WANTED, /* its rewriting is to come */
	TUNING_COMPARING,
	TUNING_SETTLED,
};

struct tuned_kernel {
	_Atomic uint64_t key; /* as in struct kernel_time; 0: free */
	struct client *_Atomic client;
	/* The candidate that launches run in, by who waits; 0 is the native one. */
	_Atomic uint32_t in_use[WAITED_COUNT];
	_Atomic uint32_t trying;  /* in turn with the native one */
	_Atomic uint32_t turns;   /* of launches while trying */
	_Atomic int32_t grants;   /* how many of them may be in the form */
	_Atomic int32_t natives;  /* how many must not, although somebody waits */
	_Atomic uint32_t chain;   /* continuations of a launch */
	_Atomic uint32_t refused; /* the driver took no launch in a form: none is tried */
	_Atomic uint32_t brief;   /* its blocks, natively: who goes ahead of them waits little */
	_Atomic double quickest;  /* of those in use, by the native one's time: 1 at most */
	struct function *_Atomic function; /* NULL: not known yet */
	_Atomic int state;                 /* enum tuning_state; the worker writes it */
	_Atomic uint64_t native;           /* ns; the worker writes it */

	/* Worker. */
	struct geometry geometry;
	uint32_t unloads;    /* of code before that was launched */
	uint32_t resident;   /* blocks of the native kernel that fit on the GPU at once */
	uint64_t evicted;    /* of late, 16 times: most evictions of a launch */
	unsigned unsure;     /* launches until that is believed */
	uint64_t made_for;   /* ns: what the candidates suit; */
	unsigned strange;    /* samples in a row of quite another time, */
	uint64_t strange_at; /* ns: since then */
	uint64_t native_at;  /* ns, when `natives` were last given */
	uint64_t seen_at;    /* ns, when a launch of it was last measured */
	bool doubted;        /* the one that is tried was hopeless, and is compared once more */
	size_t first, n;     /* candidates of the last time that the tuned was made */
	uint32_t untried;    /* the first that was not needed for equals; 0: none is left */
	struct candidate candidates[CANDIDATES_MAX];
};

/* Whether launches run in it, whoever waits. */
static inline bool tuning_uses(const struct tuned_kernel *tuned, uint32_t candidate)
{
	bool uses = false;

	for (size_t i = 0; i < WAITED_COUNT; i++)
		uses |= atomic_load(&tuned->in_use[i]) == candidate;
	return uses;
}

/* So do they from now on. */
static inline void tuning_use(struct tuned_kernel *tuned, uint32_t candidate)
{
	for (size_t i = 0; i < WAITED_COUNT; i++)
		atomic_store(&tuned->in_use[i], candidate);
}

/* Who waits for a launch of @ns once its tuned is made: nobody whose own launches go ahead of its
 * blocks, if these are brief. Short launches are not told apart, and the longest neither. */
static inline enum waited tuning_waiting(const struct tuned_kernel *tuned, uint64_t ns)
{
	const struct client *of = atomic_load_explicit(&tuned->client, memory_order_relaxed);
	bool yields = ns >= WAITED_LONG_NS && ns < PRIORITY_LONG_NS &&
		      atomic_load_explicit(&tuned->brief, memory_order_relaxed) &&
		      atomic_load_explicit(&of->yields, memory_order_relaxed);

	return yields ? WAITED_NOT : client_waiting(of, ns);
}

/* What a launch of a kernel with a tuned does. */
struct launch_decision {
	struct tuned_kernel *tuned;
	const struct launch_config *config; /* NULL: native */
	const struct rewritten *rewritten;
	uint32_t candidate;
	uint32_t chain;
	int priority; /* of the launch: priority.h */
	bool yields;  /* leaves for equals, too */
	bool sample;  /* is to be measured */
	bool forms;   /* it runs in a form, or soon may: its stream is to be prepared */
};

/* Reads the settings from the environment; before the first client. */
void tuning_init(void);

/* Launch path: ns that the kernel takes as it is. What is predicted may be of a form that takes
 * less, as slices whose data stay in the cache, and is not to end that form's use. NULL is fine. */
uint64_t tuning_native_time(const struct tuned_kernel *tuned, uint64_t predicted);

/* Launch path; @tuned may be NULL. @natively: ns. @interval: shorter kernels need no form. */
struct launch_decision tuning_decide(struct tuned_kernel *tuned, const struct client *client,
				     uint64_t key, uint64_t natively, uint64_t interval);

/* Launch path: it was not launched in the form, after all. */
void tuning_not_launched(const struct launch_decision *decision);

/* Launch path: nor will it be ever, as the driver refuses. */
void tuning_refused(struct tuned_kernel *tuned);

/* Worker: a sample was read. @crowded: others may have run meanwhile. */
void tuning_learn(struct client *client, const struct sample *sample, uint64_t ns, bool crowded);

/* Worker: it has run for so long, and goes on. */
void tuning_runs(struct client *client, const struct sample *sample, uint64_t ns, bool crowded);

/* Worker: a launch with @chain continuations was evicted so often. */
void tuning_evicted(struct tuned_kernel *tuned, uint32_t evictions, uint32_t chain);

/* Worker: is there something to be done with the driver? Then, with the context current: does it.
 */
bool tuning_pending(const struct client *client);
void tuning_work(struct client *client);

/* Worker: how many of the client's kernels are launched of late, and run in what may not be their
 * form for long: they wait for it, or are compared. */
uint64_t tuning_count(const struct client *client);

const char *form_name(enum weir_form form);

/* Any thread: the kernel's code is being unloaded. */
void tuning_code_gone(const struct function *function);

/* For tests: what was chosen; NULL: no more. */
const struct tuned_kernel *tuning_at(size_t index);

/* The client goes. */
void tuning_forget(struct client *client);
