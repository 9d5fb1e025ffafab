/* Samples of kernel times: a pair of events around a launch now and then. The worker reads them
 * later, so the application is never synchronised. */
#pragma once

#include "client/client.h"
#include "measure/predict.h"

#define SAMPLES 32

/* Short kernels feel the events: this many in a row are passed over for a longer one. */
#define SAMPLE_PASSES 16u
/* Launches into an idle stream in a row that are passed over: events cost them about 20 us, and
 * mostly somebody waits for their end. */
#define SAMPLE_STARTS 6u

/* Should some launch be measured, whatever is known of it? */
enum sample_due {
	SAMPLE_NOT_DUE,
	SAMPLE_DUE,
	SAMPLE_OVERDUE, /* short ones, too: too few long ones came */
	SAMPLE_DOUBTED, /* the very next: something ran far longer than predicted */
};

/* Did a kernel that can leave do so? */
enum sample_flight {
	SAMPLE_PLAIN,  /* it cannot */
	SAMPLE_FLYING, /* not known yet: do not read the sample */
	SAMPLE_CLEAN,
	SAMPLE_EVICTED,      /* the time includes others' */
	SAMPLE_EVICTED_ONCE, /* the same, but the times of its parts are known */
};

/* What was launched, and how. */
struct sampled {
	struct kernel_time *kernel;
	uint64_t key;
	struct geometry geometry;
	uint32_t unloads;   /* kernel_unloads() before the launch */
	bool formable;      /* may be launched in a form */
	uint64_t predicted; /* ns; 0: not known */
	uint64_t started;   /* ns, when it was launched into an idle stream (start.h); or 0 */
	bool held;          /* gates were closed */
	bool beside;        /* others run at the same time (WEIR_CONTROL_LEAVES) */
	struct arguments arguments;
	struct tuned_kernel *tuned; /* NULL: not tuned */
	uint32_t candidate;         /* of `tuned` */
	bool few;                   /* it can do with some SMs, and a level is below */
	int way;                    /* for which the client asked (gates/need-trial.h) */
};

struct sample {
	CUevent start, end;
	/* If `parts`: behind the chain's kernel, its first gate, and its first continuation. */
	CUevent away, back, done;
	bool parts;
	uint32_t chain; /* continuations */
	/* It began before the client showed demand: it is longer than its kernel. */
	bool early;
	bool sliced;  /* others may run between its parts */
	bool bounded; /* with fewer workers than fit (launch/workers.h): it says nothing of others
		       */
	struct sampled of;
	_Atomic int flight; /* enum sample_flight */

	/* Worker, while it is open. */
	bool begun;
	bool disturbed;  /* gates were closed meanwhile: others may have run */
	uint64_t waited; /* ns, when it was last seen not begun; 0: never */
	uint64_t open;   /* ns, when it was last seen not ended; 0: never */
	uint64_t seen;   /* ns, when it was last seen running; 0: never */
	uint64_t ran;    /* ns that it has run since gates were last closed */
};

static inline bool sample_evicted(const struct sample *sample)
{
	return atomic_load(&sample->flight) >= SAMPLE_EVICTED ||
	       (sample->sliced && sample->disturbed);
}

struct sampler {
	_Atomic uint32_t free;        /* bit i: samples[i] can be taken */
	_Atomic uint32_t armed;       /* bit i: both events are recorded, to be read */
	_Atomic int due;              /* enum sample_due */
	_Atomic unsigned passed_over; /* launches since `due` was set */
	struct sample samples[SAMPLES];
};
PER_CLIENT(sampler)

/* With the context current. Without events from the driver there are no samples. */
void sampler_init(struct sampler *sampler);

/* Before a launch: records the start. NULL: no sample is free, or the driver fails. */
struct sample *sample_begin(struct sampler *sampler, CUstream stream);
/* Before its end: what is launched. */
void sample_describe(struct sample *sample, const struct sampled *of);
/* After it. @launched: false: the launch failed, and the sample is given back. */
void sample_end(struct sampler *sampler, struct sample *sample, CUstream stream, bool launched);

/* Worker: how long a kernel that was evicted once ran, without the time away; 0: not known. */
uint64_t sample_ran(const struct sample *sample);

/* Worker: how long the kernel of a chain ran that was not evicted, without the continuations; 0:
 * not known. */
uint64_t sample_first(const struct sample *sample);

/* How many launches like this are passed over. */
static inline unsigned sampler_passes(int due, uint64_t predicted, bool starts)
{
	if (!predicted || due == SAMPLE_DOUBTED)
		return 0;
	if (due == SAMPLE_DUE && predicted < KERNEL_FELT)
		return SAMPLE_PASSES;
	return starts ? SAMPLE_STARTS : 0;
}

/* Launch path: true once each time that the worker has set `due`, because a kernel's time may
 * change. @predicted: ns; 0: not known. @starts: nothing is outstanding in its stream. */
static inline bool sampler_is_due(struct sampler *sampler, uint64_t predicted, bool starts)
{
	int due = load_relaxed(&sampler->due);

	if (due == SAMPLE_NOT_DUE)
		return false;
	unsigned passes = sampler_passes(due, predicted, starts);
	if (passes && add_relaxed(&sampler->passed_over, 1) < passes)
		return false;
	store_relaxed(&sampler->passed_over, 0);
	return atomic_exchange_explicit(&sampler->due, 0, memory_order_relaxed);
}

/* What the reader wants to hear. */
struct sample_reader {
	void (*ended)(void *data, const struct sample *sample, uint64_t ns);
	/* It has run for @ns and goes on. */
	void (*runs)(void *data, const struct sample *sample, uint64_t ns);
	void *data;
	uint64_t now;
	/* Gates are closed, or may have been since the last look: kernels may have waited. */
	bool held;
};

/* Worker: reads all samples that are open. True: some remain open. */
bool sampler_read(struct sampler *sampler, const struct sample_reader *reader);
