/* Which form a kernel runs in, by measurement; README.md describes the model.
 *
 * One autotuner for each kernel and geometry. It is a pure core: samples and facts go in, decisions
 * come out, the caller brings the clock. preempt/tuning.c connects it to clients and the driver.
 *
 * Threads: the launch path calls the functions marked so, from any thread. One worker thread calls
 * all others. What both touch is atomic. */
#pragma once

#include "autotune/autotuner.h"

#include "weir/base.h"
#include "weir/protocol.h"

/* How to launch a kernel. */
struct launch_decision {
	const struct launch_config *config; /* NULL: native */
	uint32_t candidate;
	uint32_t chain;
	bool yields; /* leaves for same-level clients, too */
	bool sample; /* measure this launch */
	bool apart;  /* and leave the time of its continuations out */
	bool forms;  /* the kernel runs in a form now or soon: prepare its stream */
	bool places; /* native, because higher-level clients need no more than places of its blocks
		      */
	/* Filled in by the caller. */
	struct tuned_kernel *tuned; /* NULL: not tuned */
	int priority;               /* priority.h */
	/* The launch leaves a part of the SMs, or places, and higher levels say whether that is
	 * enough. */
	bool spatial;
};

/* Does a kernel of @ns need tuning? */
bool autotune_is_long(const struct autotune_settings *settings, const struct autotune_situation *at,
		      uint64_t ns);

/* A new kernel, whose native launch took @ns. */
void autotune_init(struct autotuner *tuner, const struct autotune_settings *settings,
		   const unsigned grid[3], uint64_t ns, uint64_t now);

/* A kernel that was never launched. Its first launches run in the form that leaves soonest, until
 * one of them was measured; then it is tuned as others are, or runs natively because it is short.
 */
void autotune_init_unknown(struct autotuner *tuner, const struct autotune_settings *settings,
			   const unsigned grid[3], uint64_t now);

/* Launch path: how to launch the kernel. */
struct launch_decision autotune_decide(struct autotuner *tuner, const struct autotune_situation *at,
				       const struct autotune_launch *launch);
/* Launch path: the launch was made natively instead. */
static inline void autotune_not_launched(struct autotuner *tuner)
{
	if (load_relaxed(&tuner->comparing))
		add_relaxed(&tuner->form_grants, 1);
}
/* Launch path: the driver refuses launches in forms; no more are made. */
void autotune_refused(struct autotuner *tuner);
/* The form of launches whose workers are bounded, as of now; @other: if there is none. */
const struct launch_config *autotune_bounded(const struct autotuner *tuner,
					     const struct launch_config *other);
/* Launch path: native time of a kernel that is predicted to take @predicted. The prediction may be
 * of a form that is faster, and must not end the use of that form. */
static inline uint64_t autotune_native_time(const struct autotuner *tuner, uint64_t predicted)
{
	double best = load_relaxed(&tuner->best_ratio);
	uint64_t native = load_relaxed(&tuner->native);

	if (best >= 1 || predicted >= native)
		return predicted;
	uint64_t most = (uint64_t)((double)predicted / best);
	return smaller(most, native);
}

void autotune_sample(struct autotuner *tuner, const struct autotune_situation *at,
		     const struct autotune_sample *sample);
/* A launch has run for @ns and goes on. */
void autotune_runs(struct autotuner *tuner, uint64_t ns, uint64_t now);
/* A launch with @chain continuations was evicted so often. */
void autotune_evicted(struct autotuner *tuner, uint32_t evictions, uint32_t chain);

/* What the caller should do next. */
enum autotune_need {
	AUTOTUNE_NEEDS_NOTHING,
	AUTOTUNE_NEEDS_FORMS,  /* get the compiled forms: autotune_forms() or autotune_no_forms() */
	AUTOTUNE_NEEDS_RESUME, /* call autotune_resume() */
};
enum autotune_need autotune_need(const struct autotuner *tuner,
				 const struct autotune_situation *at);
void autotune_forms(struct autotuner *tuner, const struct autotune_situation *at,
		    const struct kernel_facts *facts);
/* In place of a comparison: takes what another process found out about this kernel, in two steps.
 * False: the kernel cannot be launched so here. Between the steps the caller publishes the kernel's
 * time, because launches may use a settled form at once. */
bool autotune_try_profile(struct autotuner *tuner, const struct kernel_facts *facts,
			  const struct weir_profile *profile, uint32_t in_use[WAITING_COUNT]);
void autotune_settle_profile(struct autotuner *tuner, const struct autotune_situation *at,
			     const uint32_t in_use[WAITING_COUNT]);
/* Fills in what this process found out, without the geometry. False: nothing yet. */
bool autotune_make_profile(const struct autotuner *tuner, struct weir_profile *out);
void autotune_no_forms(struct autotuner *tuner, const char *why);
void autotune_resume(struct autotuner *tuner, const struct autotune_situation *at);

/* The kernel is launched now, and runs in a form or natively only until it is settled. */
bool autotune_is_active(const struct autotuner *tuner, const struct autotune_situation *at);
