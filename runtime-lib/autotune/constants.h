/* Every constant of the autotuner, with its reason. Times are in nanoseconds; overheads are ratios
 * to the native kernel. Figures of the GPU were measured on an H200. */
#pragma once

// clang-format off

/* What counts as long */
#define LATENCY_NS        100000u   /* default target from a demand until the GPU is free: preemptLatency */
#define LONG_KERNEL_NS    2000000u  /* a shorter kernel delays no same-level client: their quanta are milliseconds */
#define GATES_APART_NS    1000000u  /* largest distance of gates: a shorter kernel ends before a gate would stop it */
#define UNKNOWN_NS        NS_PER_S  /* assumed of a kernel that was never launched: its blocks count as long, too */
#define UNKNOWN_SAMPLES   8u        /* of such a kernel: after so many that others made longer, the least is believed */

/* How soon a form leaves */
#define POLL_PERIOD_NS    8000u     /* between two looks at demand and hold, by one block for the whole GPU */
#define POLL_NS           15000u    /* from the demand until a block sees it, plus from the last block to the end */
#define PLACE_NS          30000u    /* blocks that end within this time give places to others as soon as a form would */
#define SAFE_POINT_NS     10000u    /* largest distance of two safe points (transformer/FORMS.md) */

/* Which configurations are worth a comparison */
#define CANDIDATES_MAX    24u       /* native, and those of a few rounds of tuning */
#define TICKET_NS         10000u    /* work of a ticket: much more than drawing it costs */
#define TICKET_GROWTH_MAX 8u        /* larger tickets are tried up to this factor: neighbouring blocks share data */
#define SHORT_SLICE_PARTS 7u        /* of 8 parts of the latency: slices take longer than their share of the time */
#define CUT_TIMES_MAX     3u        /* slices of a grid that fits on the GPU take up to so many latencies */
#define LONG_SLICE_NS     500000u   /* slice for same-level clients: costs little, and is short beside their quantum */
#define WORKERS_MAX       65535u    /* of resumable kernels: the ABI's limit */
#define CALLS_MAX         256u      /* threads at a time in malloc() and free(); with fewer they are slower, and leave no sooner (transformer/FORMS.md) */
#define PRINTS_MAX        16u       /* threads at a time in printf() */
#define ALLOCATING_MAX    256u      /* threads of blocks that call malloc() at a time: calls take longer the more is allocated */
#define ALLOCATING_PATIENCE 256u    /* with 256 blocks that wait 8 s; a round of the slowest known program takes 2 s */

/* How many samples decide. Measurement noise is a smaller part of a long kernel's time, so long
 * kernels need fewer. `most`: evictions spoil samples, so the comparison ends after this many. */
#define SAMPLE_TIMES      16u       /* samples of a candidate that are kept: a confirmation takes 15 */
#define SAMPLING          { LONG_KERNEL_NS, 5, 16 }, /* below 2 ms: median of five */ \
			  { 8000000, 3, 12 },        /* below 8 ms: median of three */ \
			  { UINT64_MAX, 2, 10 }      /* the smaller of two */
#define CONFIRM_FACTOR    3u        /* more samples confirm the best: the smallest of many ratios is too small */
#define NATIVE_ONE_IN     3u        /* launches while comparing, at random: a program's own period must not alias */
#define REGRANT_EVERY     8u        /* native samples without one of the candidate: its grant was lost, give another */
#define GIVE_UP_AFTER     400u      /* native samples without one of the candidate: it is never launched */

/* Which overhead is acceptable */
#define OVERHEAD_MAX      1.02      /* of a form in use although nobody waits */
#define OVERHEAD_HOPELESS 1.5       /* of a first launch: no more of these, and nobody waits for a second one */
#define OVERHEAD_WAITED   1.25      /* while somebody waits: still better for them than a native launch */
#define OVERHEAD_SOON     1.10      /* while somebody waits: take the one that leaves first, not the fastest */
#define OVERHEAD_QUANTUM  1.03      /* of a quantum among same-level clients: good enough, try nothing more */
#define LEAVE_QUANTUM_NS  1000000u  /* same-level clients may wait this long until a kernel has left */

/* While somebody waits a native launch is what they wait for, so native launches are rationed. */
#define FIRST_WAITED      4         /* launches in a form until it is known not to be hopeless */
#define GRANTED_WAITED    (1 << 30) /* and afterwards: no limit */
#define NATIVE_EVERY_NS   200000000u /* distance of native launches */
#define NATIVE_PARTS      10u       /* among same-level clients at most so many times their length: a tenth of the time */
#define NATIVE_URGENT_NS  1000000000u /* while others above wait: of 100 requests a second at most one finds it in its way, */
#define NATIVE_URGENT_PARTS 100u    /* of a longer one a hundredth of all requests; */
#define NATIVES_URGENT    2u        /* and so many of them decide; */
#define NATIVE_COSTLY_NS  100000000u /* of a kernel this long one, for all candidates; */
#define NATIVE_NEVER_NS   1000000000u /* of one this long none, and the comparison waits until they are gone */

/* When an old decision is reviewed */
#define OUTLIERS          3u        /* samples in a row that are twice or half the expected time */
#define OUTLIERS_CROWDED  16u       /* the same if others on the GPU may have made them longer */
#define OUTLIERS_FOR_NS   200000000u /* for this long: same-level clients run side by side until the agent sees them */
#define LAUNCHED_FOR_NS   1000000000u /* a kernel without a sample for this long is not launched now */

/* How many continuations a launch has */
#define CHAIN_MAX         256u      /* each takes two of the driver's about 1000 places for queued work */
#define CHAIN_UNKNOWN     336u      /* of a launch of unknown length: behind its end nobody above could stop it (preempt/launch-queue.h) */
#define EVICTION_EVERY_NS 100000u   /* work between two evictions at least: demand lingers that long */
#define EVICTION_WAITED_NS 5000000u /* first launches while somebody waits: one eviction expected for this much work */
#define CHAIN_WAITED_NS   1500000u  /* below somebody: one for this much work at least, which costs 0.3 % */
#define CHAIN_UNSURE      8u        /* launches with the longest chain after one that ran out of continuations */
#define CHAIN_SHORT_NS    1000000u  /* one spare continuation below this, */
#define CHAIN_MEDIUM_NS   3000000u  /* two below this, three above: an unused one costs 4.6 us of GPU time */
// clang-format on
