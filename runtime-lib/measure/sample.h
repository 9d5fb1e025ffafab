/* Samples of kernel times: a pair of events around a launch now and then, read later by the worker,
 * so that the application is never synchronised. */
#pragma once

#include "client/client.h"
#include "measure/predict.h"

#include <stdatomic.h>
#include <stdint.h>

#define SAMPLES 32

/* Short kernels feel the events: this many in a row are passed over for a longer one. */
#define SAMPLE_PASSES 16u
/* A launch into an idle stream feels them more, about 20 us: mostly somebody waits for its end. */
#define SAMPLE_STARTS 6u

/* Whether a launch is to be measured, whatever is known of it. */
enum sample_due {
	SAMPLE_NOT_DUE,
	SAMPLE_DUE,
	SAMPLE_OVERDUE, /* short ones, too: so few come that they may not be as short as is known */
	SAMPLE_DOUBTED, /* the next one, whichever: one ran for far longer than was predicted */
};

/* Whether a kernel that can leave did. */
enum sample_flight {
	SAMPLE_PLAIN,  /* it cannot */
	SAMPLE_FLYING, /* not yet known: not to be read */
	SAMPLE_CLEAN,
	SAMPLE_EVICTED,      /* the time is that of others as well */
	SAMPLE_EVICTED_ONCE, /* so is this, but its parts are known */
};

/* What was launched, and how. */
struct sampled {
	struct kernel_time *kernel;
	uint64_t key;
	struct geometry geometry;
	uint32_t unloads;   /* of code before the launch (function.h) */
	bool formable;      /* may be launched in a form */
	uint64_t predicted; /* ns; 0: nothing was */
	uint64_t started;   /* ns, when it was launched into an idle stream (start.h); or 0 */
	bool held;          /* gates were closed */
	struct arguments arguments;
	struct tuned_kernel *tuned; /* NULL: there was none */
	uint32_t candidate;         /* of `tuned` */
};

struct sample {
	CUevent start, end;
	/* Of a chain (preempt.h), if @parts: behind its kernel, its first gate, and its first
	 * continuation. */
	CUevent away, back, done;
	bool parts;
	uint32_t chain; /* continuations */
	bool sliced;    /* others may run between its parts */
	struct sampled of;
	_Atomic int flight; /* enum sample_flight */

	/* Worker, while it is open. */
	bool begun;
	bool disturbed;  /* gates were closed meanwhile: it may have been away, or among others */
	uint64_t waited; /* ns, when it was last seen not to have begun; 0: never */
	uint64_t open;   /* ns, when it was last seen not to have ended; 0: never */
	uint64_t seen;   /* ns, when it was last seen to run; 0: it was not yet */
	uint64_t ran;    /* ns, that it has run since gates were last closed */
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
	_Atomic unsigned passed_over; /* short ones, since that */
	struct sample samples[SAMPLES];
};
extern struct sampler samplers[CLIENTS_MAX];
static inline struct sampler *sampler_of(const struct client *client)
{
	return &samplers[client->index];
}

/* With the context current. Where the driver gives no events there are no samples. */
void sampler_init(struct sampler *sampler);

/* Before a launch that is to be measured: records the start, or NULL if none is free or it fails.
 */
struct sample *sample_begin(struct sampler *sampler, const struct sampled *of, CUstream stream);
/* After it. @launched: false when the launch failed, the sample is given back. */
void sample_end(struct sampler *sampler, struct sample *sample, CUstream stream, bool launched);

/* Worker: how long one ran that was evicted once, without the time between; 0: not known. */
uint64_t sample_ran(const struct sample *sample);

/* How many such launches in a row are passed over. */
static inline unsigned sampler_passes(int due, uint64_t predicted, bool starts)
{
	if (!predicted || due == SAMPLE_DOUBTED)
		return 0;
	if (due == SAMPLE_DUE && predicted < KERNEL_FELT)
		return SAMPLE_PASSES;
	return starts ? SAMPLE_STARTS : 0;
}

/* Launch path: one launch each time that the worker has set `due`. What a kernel took when it was
 * first launched need not be what it takes today. @predicted: ns; 0: not known. @starts: nothing is
 * outstanding in its stream. */
static inline bool sampler_is_due(struct sampler *sampler, uint64_t predicted, bool starts)
{
	int due = atomic_load_explicit(&sampler->due, memory_order_relaxed);

	if (due == SAMPLE_NOT_DUE)
		return false;
	unsigned passes = sampler_passes(due, predicted, starts);
	if (passes &&
	    atomic_fetch_add_explicit(&sampler->passed_over, 1, memory_order_relaxed) < passes)
		return false;
	atomic_store_explicit(&sampler->passed_over, 0, memory_order_relaxed);
	return atomic_exchange_explicit(&sampler->due, 0, memory_order_relaxed);
}

/* What has become of a sample. */
struct sample_reader {
	void (*ended)(void *data, const struct sample *sample, uint64_t ns);
	/* It goes on, and has run for @ns already. */
	void (*runs)(void *data, const struct sample *sample, uint64_t ns);
	void *data;
	uint64_t now;
	/* Gates are closed, or may have been since the last time: who runs may wait for others'
	 * blocks to end. */
	bool held;
};

/* Worker: reads all that are open. True: some still are. */
bool sampler_read(struct sampler *sampler, const struct sample_reader *reader);
