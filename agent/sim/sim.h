/* Simulates a GPU, its clients and the agent's scheduling on a virtual clock. Pure and
 * deterministic: the same trace, options and seed give the same result.
 *
 * The model. One client's work runs at a time. Gates keep back a client that is held, or below a
 * level with work outstanding. A launch that has not begun stops at once; a launch that runs stops
 * after the client's `evict`, or at its end. Another client's work starts after a context switch.
 * Of the clients that nothing keeps back, the hardware serves one for a slice, then the next.
 *
 * With `hardware` clients have channel groups. Where the policy leaves its work to slices by weight
 * (policy.h), the clients of the highest level take no turns, and have the agent's slices.
 *
 * Under MPS the hardware serves one launch, then one of the next client, without context switches.
 * That is how kernels behave that fill the GPU. The model leaves out what smaller kernels gain by
 * running concurrently, except at the ends of launches, because the last wave of blocks seldom
 * fills the GPU. When a launch has only its client's `overlap` left, the next client's launch
 * begins, if nothing keeps it back: at the end of a run the next client is released while the old
 * launch still runs. At most two clients overlap, and a client never overlaps itself. Both run as
 * fast as alone, so all clients together may run for longer than the time (`shared`). A launch that
 * is evicted gives no such room.
 *
 * A client with `sms` and `yield` needs only some SMs, as libweir counts them. While all clients
 * above a level need only some, a client of that level runs on the others, under MPS: its launch
 * takes longer by as much as it has less. A launch that fills the GPU first leaves these SMs, which
 * takes `evict`; then the client above begins. A launch that must leave all of them runs until then
 * beside the client above, and costs that one nothing.
 *
 * With `fit` clients have rate curves, and the policy coexec has their kernels run at the same time
 * under MPS, if all are of one level, without objectives and minimum rates. Then a launch has as
 * many workers on an SM as the policy said when it began. `fit` of them have the speed alone, n
 * have (1 - exp(-3n / needs)) / (1 - exp(-3fit / needs)) of it. Workers that do not fit together
 * share the room in proportion. Of arithmetic and of memory the GPU has 1: where clients want more,
 * all that use it get on as much slower. A client's `ran` then is its work, as it takes alone, so
 * the sum of the throughputs (STP) is what running together gains. What bounding a kernel costs is
 * left out.
 *
 * The agent looks at its clients at intervals, and its timers are late. */
#pragma once

#include "policy/policy.h"
#include "scheduler/trace.h"

#define SIM_QUEUE_MAX 4096 /* requests that wait, of a client; more are dropped and counted */
#define SIM_BUCKETS   400  /* of a histogram: 8 for each doubling */

struct sim_options {
	const struct policy *policy;
	struct policy_settings settings;
	uint64_t end;       /* ns */
	uint64_t look;      /* ns between two looks; 0: the agent sees all at once */
	uint64_t late;      /* ns that a timer may be late, at random */
	uint64_t evict;     /* ns, of clients without `evict` */
	uint64_t slice;     /* ns, the hardware's */
	uint64_t switching; /* ns, a context switch */
	uint64_t window;    /* ns over which shares are compared; 0: none are */
	uint64_t seed;
	uint32_t sms;       /* of the GPU */
	bool mps, hardware; /* `hardware` means nothing under MPS */
	FILE *log;          /* gets a line for each event; may be NULL */
};

extern const struct sim_options sim_defaults;

struct sim_client {
	uint64_t requests, dropped, late; /* `late`: started later than the objective */
	uint64_t work;                    /* ns, of finished requests */
	uint64_t turnaround, wait;        /* ns, sums: from arrival to end, to start */
	uint64_t ran;                     /* ns on the GPU; with `fit`: of work */
	uint64_t busy;                    /* ns with work outstanding */
	uint64_t starved;                 /* ns, the longest wait with work outstanding */
	double share_min, share_max;      /* over the windows in which it always had work */
	uint32_t turnarounds[SIM_BUCKETS];
};

struct sim_result {
	size_t n;
	struct sim_client *clients; /* as in the trace */
	uint64_t time;              /* ns of virtual time */
	uint64_t ran, idle;         /* ns: a client ran; none had work */
	uint64_t shared;            /* ns: two or more ran. Without `fit` the clients' `ran` add
				       up to `ran` + this */
	uint64_t wasted;            /* ns with work, and no client running: switches, holds */
	uint64_t held_alone;        /* ns in which all clients with work were held: must be 0 */
	uint64_t switches, evictions, holds, decisions;
};

/* -ENOMEM. */
int sim_run(struct sim_result *out, const struct trace *trace, const struct sim_options *options);
void sim_result_deinit(struct sim_result *result);

/* A quantile of the turnaround, in ns, within 9 %. */
uint64_t sim_quantile(const struct sim_client *client, double q);

/* Prints the result for people, or as JSON. @rows: clients to print; sums have all. */
void sim_print(FILE *out, const struct trace *trace, const struct sim_options *options,
	       const struct sim_result *result, size_t rows);
void sim_print_json(FILE *out, const struct trace *trace, const struct sim_options *options,
		    const struct sim_result *result);
