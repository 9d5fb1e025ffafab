/* When the scheduler looks at its clients next. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

/* Times between two looks. All are in ns. A decision comes within 1 ms of its cause, with the look
 * itself and the timer's lateness. */
#define LOOKS_WORK_NS   800000ull     /* while a client with same-level clients has work */
#define LOOKS_FAST_NS   100000ull     /* where work that comes or ends must be seen at once, */
#define LOOKS_FAST_FOR  200000000ull  /* for so long after there was work */
#define LOOKS_IDLE_NS   2000000ull    /* while none has work, */
#define LOOKS_BUSY_NS   1000000000ull /* for so long after there was some; and then */
#define LOOKS_CLIENT_NS 70000ull      /* for each client of the node, */
#define LOOKS_ASLEEP_NS 50000000ull   /* but no more than this */
/* The end of a short run that others wait for: a timer may be so late, so from then on looks follow
 * each other without one, for so long in a run, and then so often. */
#define LOOKS_LATE_NS 60000ull
#define LOOKS_SPIN_NS 200000ull
#define LOOKS_END_NS  20000ull

/* Of all GPUs. */
struct looks {
	uint64_t n_clients;  /* at the last look */
	uint64_t busy_until; /* LOOKS_IDLE_NS holds until then, */
	uint64_t fast_until; /* and LOOKS_FAST_NS until then */
};

/* In how many ns at the latest. @busy: a client of @gpu that contends has work. @passed: ns since
 * the last look. */
uint64_t looks_next(struct looks *looks, struct gpu *gpu, bool busy, uint64_t passed, uint64_t now);
