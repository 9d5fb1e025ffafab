/* A GPU, its clients and the agent's scheduling, on a virtual clock. Pure and deterministic: the
 * same trace, options and seed give the same result.
 *
 * The model. One client's work runs at a time. Gates keep back who is held or below a level with
 * work outstanding: at once for what has not begun, for a launch that is running after the client's
 * `evict` or when it ends. Another client's work starts after a context switch. Of those whom
 * nothing keeps back the hardware serves one for a slice, then the next.
 *
 * Below MPS it serves one launch, then one of the next, and there are no context switches: so it is
 * with kernels that fill the GPU. What smaller ones gain by running at the same time is left out,
 * but for the ends of launches: the last wave of blocks seldom fills the GPU. Where so much is left
 * of a launch as its client's `overlap`, that of the next client begins, if nothing keeps that one
 * back: at the end of a turn it is released while the launch that was running still runs. Of no
 * client two launches run at a time, since what it takes alone has that in it, and of no more than
 * two clients. Both run as fast as alone, so that all together may have run for longer than the
 * time (`shared`). What leaves before its end leaves no such room.
 *
 * The agent looks at its clients at intervals, and its timers are late. */
#pragma once

#include "policy/policy.h"
#include "scheduler/trace.h"

#define SIM_QUEUE_MAX 4096 /* requests that a client has waiting; more are dropped, and counted */
#define SIM_BUCKETS   400  /* of a histogram: 8 for each doubling */

struct sim_options {
	const struct policy *policy;
	struct policy_settings settings;
	uint64_t end;       /* ns */
	uint64_t look;      /* ns between two looks; 0: the agent sees everything at once */
	uint64_t late;      /* ns that a timer may be late, at random */
	uint64_t evict;     /* ns, of clients that say nothing */
	uint64_t slice;     /* ns, the hardware's */
	uint64_t switching; /* ns, a context switch */
	uint64_t window;    /* ns, over which shares are compared; 0: not */
	uint64_t seed;
	bool mps;
	FILE *log; /* NULL, or gets a line for each event */
};

extern const struct sim_options sim_defaults;

struct sim_client {
	uint64_t requests, dropped, late; /* `late`: started after the client's objective */
	uint64_t work;                    /* ns of the requests that are done */
	uint64_t turnaround, wait;        /* ns, sums over them: arrival to end, to start */
	uint64_t ran;                     /* ns on the GPU, of all */
	uint64_t busy;                    /* ns with work outstanding */
	uint64_t starved;                 /* ns, the longest time with work and not running */
	double share_min, share_max;      /* over the windows in which it always had work */
	uint32_t turnarounds[SIM_BUCKETS];
};

struct sim_result {
	size_t n;
	struct sim_client *clients; /* as in the trace */
	uint64_t time;              /* ns of virtual time */
	uint64_t ran, idle;         /* ns: somebody ran; nobody had work */
	uint64_t shared;            /* ns: two ran. All clients' `ran` add up to this and `ran` */
	uint64_t wasted;            /* ns with work there, and nobody running: switches and holds */
	uint64_t held_alone;        /* ns in which all who had work were held: never */
	uint64_t switches, evictions, holds, decisions;
};

/* -ENOMEM. */
int sim_run(struct sim_result *out, const struct trace *trace, const struct sim_options *options);
void sim_result_deinit(struct sim_result *result);

/* ns, within 9 %. */
uint64_t sim_quantile(const struct sim_client *client, double q);

/* The result for people, or as JSON. @rows: of clients, the rest is only in the sums. */
void sim_print(FILE *out, const struct trace *trace, const struct sim_options *options,
	       const struct sim_result *result, size_t rows);
void sim_print_json(FILE *out, const struct trace *trace, const struct sim_options *options,
		    const struct sim_result *result);
