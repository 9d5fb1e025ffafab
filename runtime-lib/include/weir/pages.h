/* The five kinds of pages that an agent shares with the clients of its node (weir/protocol.h, which
 * also says how they may change).
 *
 * Memory. A container has an account and a limit on each GPU. A process reserves in its slot of the
 * account before it asks the driver, under the account's lock, and only if the sum of all slots
 * stays within the limit. So the agent is not on that path, and its death changes nothing. Only the
 * agent writes the limit page. It frees the slot, and the lock, of a dead process. A container can
 * harm its own account only.
 *
 * Demand. A GPU has one demand page for each level that can be preempted, 0..2. The word of level q
 * is non-zero while a client above q has work outstanding. A client of level p sets its bit in the
 * words of all levels below p, and its own gates wait for the word of level p alone. So a writable
 * mapping of page q is exactly the right to preempt level q; when a client loses that, all others
 * get a new page. On an H200 an open gate with one wait costs 2.5 us of GPU time; each further wait
 * in it would cost 1.0 us. A client that needs only n SMs sets its bit in `word` alone and adds n
 * to `sms`; any other sets it in `whole`, too.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_PAGE_SIZE     4096u
#define WEIR_LEVELS        4u                 /* 0 lowest .. 3 highest */
#define WEIR_DEMAND_LEVELS (WEIR_LEVELS - 1u) /* levels that can be preempted */

/* Clients above level 0 have a bit of the demand words of their own, 0..62, as long as there are
 * enough. The others get WEIR_BIT_SHARED and set no bit; the agent sets bit 63 for all of them by
 * their status pages. */
#define WEIR_BITS_OWN   63u
#define WEIR_BIT_SHARED 63u
#define WEIR_BIT_NONE   0xffu

#define WEIR_MEMORY_SLOTS 252u
/* Memory is reserved in chunks, the unit in which drivers take it from the GPU. An allocation of
 * half a chunk or more takes whole chunks; a process's smaller ones share chunks. */
#define WEIR_MEMORY_CHUNK (2u << 20)
/* A file beside the socket while some container of the node has a limit. A process that finds it,
 * but no agent, must not allocate. */
#define WEIR_LIMITED_NAME "memory-limited"
/* Set, and not 0, in the environment of a container that may have a limit. A process that finds no
 * agent must not allocate. */
#define WEIR_LIMITED_VARIABLE "WEIR_MEMORY_LIMITED"

/* Of a container on a GPU. It outlives the agent: the last limit holds. */
struct weir_limit_page {
	uint32_t magic, version;
	_Atomic uint64_t limit; /* bytes, 0: none */
	/* How long an allocation within the limit waits for memory of the GPU; 0: it fails. */
	_Atomic uint32_t wait_ms;
	uint8_t reserved[WEIR_PAGE_SIZE - 20];
};

/* Of a container on a GPU. Each of its processes writes its own slot. It outlives the agent. */
struct weir_account_page {
	uint32_t magic, version;
	_Atomic uint32_t lock; /* slot + 1 of the process that holds it; 0: free */
	uint8_t reserved[64 - 12];
	struct {
		_Atomic uint64_t reserved; /* bytes, a multiple of the chunk */
		_Atomic uint32_t pid;      /* in the agent's namespace, which writes it; 0: free */
		uint32_t reserved0;
	} slots[WEIR_MEMORY_SLOTS];
};

/* File `demand-q` of a GPU. It outlives the agent. */
struct weir_demand_page {
	_Atomic uint64_t word;  /* bit b: its client, of a level above q, has work outstanding */
	_Atomic uint64_t whole; /* bit b: and that work needs the whole GPU */
	/* The SMs that the clients need together whose bit is in `word` and not in `whole`, or was
	 * a moment ago. */
	_Atomic uint32_t sms;
	uint32_t reserved0;
	/* Bit b: the latest work of its client needs no SMs of its own. It is short, and its blocks
	 * have a higher launch priority (MPS), so they begin as soon as blocks of lower-level
	 * kernels end. Set and cleared before the bit in `word` is set; it stays when that is
	 * cleared. */
	_Atomic uint64_t places;
	uint8_t reserved[WEIR_PAGE_SIZE - 32];
};

enum weir_control_flags {
	WEIR_CONTROL_HOLDABLE = 1u << 0, /* the policy uses hold words: gates wait for it, too */
	/* The client may be held soon: same-level clients have work. If they run at the same time
	 * as this client, it is set only while the client is in their way. */
	WEIR_CONTROL_CONTENDED = 1u << 1,
	/* Same-level clients must not wait for this client's kernels to end: use a form that leaves
	 * soon. */
	WEIR_CONTROL_URGENT = 1u << 2,
	/* Send struct weir_work when work comes to the idle client. */
	WEIR_CONTROL_TELL = 1u << 3,
	/* Same-level clients run at the same time, short launches first: under MPS each launch gets
	 * a priority by its length. If there are other levels, the client that had work first is
	 * ahead. */
	WEIR_CONTROL_AHEAD = 1u << 4,
	/* The hardware stops this client in the middle of kernels, or same-level clients run at
	 * the same time: kernels seem to take longer than they do. */
	WEIR_CONTROL_SLICED = 1u << 5,
	/* Kernels run at the same time as those of other clients (MPS), each higher-level client
	 * sets weir_demand_page.whole, and some of them may need only a part of the SMs. So a form
	 * that can leave a part of the SMs waits for `whole` instead of `word`. */
	WEIR_CONTROL_SPATIAL = 1u << 6,
	/* The client has a minimum rate: what it has finished must be reported within a
	 * millisecond. */
	WEIR_CONTROL_RATED = 1u << 7,
	/* The client is ahead of that rate: its work shows no demand. */
	WEIR_CONTROL_LEAVES = 1u << 8,
	/* The agent measures how fast the client's work gets on: each launch that is finished must
	 * be reported within a millisecond. */
	WEIR_CONTROL_MEASURED = 1u << 10,
};

#define WEIR_YIELD_MORE_MAX   100u
#define WEIR_YIELD_AUTO       255u
#define WEIR_YIELD_NUMBER     65536u
#define WEIR_YIELD_NUMBER_MAX 9999u

/* The agent writes, the client reads. A client whose agent has died clears its own hold word. */
struct weir_control_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint32_t level;        /* for display; LEVEL messages carry the pages */
	_Atomic uint32_t flags;        /* enum weir_control_flags */
	_Atomic uint32_t above;        /* higher-level clients of this GPU */
	_Atomic uint32_t epoch;        /* counts changes of this page */
	_Atomic uint64_t memory_limit; /* bytes, 0: none; for display (struct weir_limit_page) */
	_Atomic uint32_t share;        /* 1..100, hundredths of the GPU */
	/* Clients of this GPU that run at the same time (WEIR_STATUS_CONCURRENT) and have a
	 * higher-level client: that one waits for what all of them have begun. 0: not known. */
	_Atomic uint32_t beside;
	/* CLOCK_MONOTONIC in ns: the client clears a hold that the agent does not renew until then.
	 */
	_Atomic uint64_t hold_until;
	_Atomic uint64_t latency_slo; /* ns from launch to start that the pod wants; 0: none */
	_Atomic uint32_t below;       /* lower-level clients of this GPU */
	/* ns: kernels up to this long need not leave for higher-level clients, whose work takes
	 * many times as long. 0: not known. */
	_Atomic uint32_t max_blocking_time;
	_Atomic uint32_t
		hold; /* non-zero: gates are closed. On a cache line of its own: the GPU polls it */
	uint8_t reserved1[128 - 68];
	/* CLOCK_MONOTONIC in ns: the agent has stopped the client's channel groups, and the client
	 * lets them go on if the agent does not renew this in time. 0: they are not stopped. */
	_Atomic uint64_t stopped_until;
	/* What lower-level clients are to leave to this one. 0: the whole GPU. Else the SMs that
	 * its launches need, one for each block or what is measured to be faster, and `yield` - 1
	 * per cent more of them: at most WEIR_YIELD_MORE_MAX. WEIR_YIELD_AUTO: the client finds
	 * out which of both does. Above WEIR_YIELD_NUMBER: launches of few blocks get `yield` -
	 * WEIR_YIELD_NUMBER SMs. An older library takes both for the whole GPU. */
	_Atomic uint32_t yield;
	/* What earlier processes of the same program have found, as weir_profile.yields. */
	_Atomic uint32_t yield_known;
	/* Same-level clients run at the same time (MPS), and this one's launches have at most so
	 * many blocks on an SM, at least 1: in the forms persistent and resumable, where the grid
	 * has more blocks than that. From the next launch on. 0: as many as fit. WEIR_SM_WORKERS or
	 * more: the same, but launches are in a form. */
	_Atomic uint32_t workers;
	/* A number for the lower-level clients that run at the same time and have work, or had some
	 * a moment ago. Told if `yield` is neither 0 nor a number of SMs; 0: there are none, or it
	 * is not told. */
	_Atomic uint32_t company;
	uint8_t reserved[WEIR_PAGE_SIZE - 152];
};

#define WEIR_STATUS_FORMS 8u /* at most */
#define WEIR_SM_RESOURCES 4u
#define WEIR_SM_WORKERS   32u /* no SM holds more blocks */
#define WEIR_SM_PARTS     65536u

enum weir_status_flags {
	/* The client's kernels run at the same time as those of others with this flag (MPS):
	 * same-level clients need not take turns. */
	WEIR_STATUS_CONCURRENT = 1u << 0,
	/* All launches of the last 10 s could have priorities by length (WEIR_CONTROL_AHEAD).
	 * Graphs have none, and the program's own priorities do not follow the length. */
	WEIR_STATUS_ORDERED = 1u << 1,
	/* All outstanding kernels are finished; only gates are left in the streams. A hold would
	 * only delay the news to the program. As of the last look. */
	WEIR_STATUS_DONE = 1u << 2,
};

/* The client writes, the agent reads, and trusts it for no more than display. Times are in
 * nanoseconds; counters only grow. */
struct weir_status_page {
	uint32_t magic;
	uint32_t version;
	_Atomic uint64_t launches;    /* kernels and graphs launched */
	_Atomic uint64_t outstanding; /* launches that are not known to be finished */
	_Atomic uint64_t gpu_time;    /* predicted, of all launches */
	_Atomic uint64_t
		remaining;      /* predicted, of outstanding launches, less what they have run */
	_Atomic uint64_t gates; /* put into streams */
	_Atomic uint64_t gates_closed; /* gates that were closed when they were put */
	_Atomic uint64_t waits;        /* times that outstanding work began to wait for a gate */
	_Atomic uint64_t wait_time;    /* of that */
	_Atomic uint64_t evictions;    /* running kernels that left early */
	_Atomic uint32_t level;        /* the level at which the client acts now */
	_Atomic uint32_t flags;        /* enum weir_status_flags; an older client has none */
	/* By enum weir_form (weir/transform.h); the native form's stay 0. */
	_Atomic uint64_t form_launches[WEIR_STATUS_FORMS];
	_Atomic uint64_t form_evictions[WEIR_STATUS_FORMS];
	uint8_t reserved1[256 - 216];
	/* Predicted GPU time of finished launches; launches of unknown time count nothing. Loops
	 * (weir/loop-link.h) measure their time, also of launches that go on. 0: an older library.
	 */
	_Atomic uint64_t executed;
	/* Launches into an idle stream, and how many of them started later than latency_slo. With a
	 * predicted time their end tells, else the gate before them. Launches that wait behind the
	 * same closed gates count once. */
	_Atomic uint64_t starts;
	_Atomic uint64_t starts_late;
	/* Launches that were predicted and measured, and the sum of their relative errors in
	 * millionths, each 10 at most. */
	_Atomic uint64_t predictions;
	_Atomic uint64_t prediction_error;
	/* Expected GPU time that an eviction costs now; 0: not known. */
	_Atomic uint64_t eviction_cost;
	_Atomic uint64_t demand_time; /* with work outstanding */
	/* Speculative demand: times, misses, and the time until the launch or its end. */
	_Atomic uint64_t speculative;
	_Atomic uint64_t speculative_misses;
	_Atomic uint64_t speculative_time;
	/* Kernels launched within the last second whose form is not settled: it is compiled, or
	 * compared with the native one. */
	_Atomic uint64_t comparing;
	/* From when work comes to the idle client until all is done, the shortest of the latest
	 * periods; 0: not known, or an older library. */
	_Atomic uint64_t busy_period;
	/* Blocks of evicted kernels that were saved, and that were finished instead, because that
	 * was sooner; bytes written for the saved ones, at most. */
	_Atomic uint64_t blocks_saved;
	_Atomic uint64_t blocks_drained;
	_Atomic uint64_t bytes_saved;
	/* What the client's demand adds to weir_demand_page.sms, of the pages in which it has its
	 * bit; also for a moment after its demand has ended. Written before it is added, and
	 * cleared after it is taken away. 0: its demand is for the whole GPU, or there is none. */
	_Atomic uint32_t demand_sms;
	_Atomic uint32_t gpu_sms; /* that the GPU has; 0: an older library */
	/* Running kernels that left a part of the SMs to higher-level clients. */
	_Atomic uint64_t partial_leaves;
	uint64_t unused; /* 0 */
	/* The kernel that was launched last in a form that `workers` of the control page bounds: a
	 * number for kernel and geometry that is the same in all processes, 0: not known; and what
	 * of an SM one block takes, in 1/WEIR_SM_PARTS: threads, registers, shared memory, places
	 * for blocks. All 0: none was launched. */
	_Atomic uint64_t worker_kernel;
	_Atomic uint32_t worker_parts[WEIR_SM_RESOURCES];
	/* Loops (weir/loop.cuh) of the client; those whose kernel is on the GPU or queued;
	 * callbacks that wait for files, the network, timers, functions of the host. */
	_Atomic uint32_t loops, loops_on_gpu, loops_waiting[4];
	/* Times that a kernel left because all blocks of its loop waited, and ns until it was
	 * launched again. */
	_Atomic uint64_t loops_blocked, loops_blocked_time;
	/* With WEIR_YIELD_AUTO: lower levels must be able to leave a part of the GPU, as the client
	 * asks for less than all, or is about to; what it has found beside those that work below
	 * now, as weir_profile.yields; launches for which it has tried less, and ns that these have
	 * lost at most. */
	_Atomic uint32_t yield_asks, yield_found;
	_Atomic uint64_t yield_tried, yield_lost;
	uint64_t unused1[3]; /* 0 */
	/* ns that a kernel has stayed on the GPU since gates closed behind it; the longest of the
	 * client's streams. Not counted: while the hardware stops it. 0: there is none. */
	_Atomic uint64_t overrun;
	/* The SMs on which the client's kernels run at most: MPS gives its process no others. 0: an
	 * older library. */
	_Atomic uint32_t given_sms;
	uint32_t reserved2;
	uint8_t reserved[WEIR_PAGE_SIZE - 528];
};

static_assert(offsetof(struct weir_limit_page, wait_ms) == 16, "page layout");
static_assert(sizeof(struct weir_limit_page) == WEIR_PAGE_SIZE, "one page");
static_assert(sizeof(struct weir_account_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_account_page, slots) == 64, "page layout");
static_assert(sizeof(struct weir_demand_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_demand_page, whole) == 8, "page layout");
static_assert(offsetof(struct weir_demand_page, sms) == 16, "page layout");
static_assert(offsetof(struct weir_demand_page, places) == 24, "page layout");
static_assert(sizeof(struct weir_control_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_control_page, memory_limit) == 24, "page layout");
static_assert(offsetof(struct weir_control_page, hold) == 64, "a cache line of its own");
static_assert(offsetof(struct weir_control_page, stopped_until) == 128, "page layout");
static_assert(offsetof(struct weir_control_page, yield) == 136, "page layout");
static_assert(offsetof(struct weir_control_page, yield_known) == 140, "page layout");
static_assert(offsetof(struct weir_control_page, workers) == 144, "page layout");
static_assert(offsetof(struct weir_control_page, company) == 148, "page layout");
static_assert(sizeof(struct weir_status_page) == WEIR_PAGE_SIZE, "one page");
static_assert(offsetof(struct weir_status_page, level) == 80, "page layout");
static_assert(offsetof(struct weir_status_page, flags) == 84, "page layout");
static_assert(offsetof(struct weir_status_page, form_launches) == 88, "page layout");
static_assert(offsetof(struct weir_control_page, beside) == 36, "page layout");
static_assert(offsetof(struct weir_control_page, hold_until) == 40, "page layout");
static_assert(offsetof(struct weir_control_page, below) == 56, "page layout");
static_assert(offsetof(struct weir_control_page, max_blocking_time) == 60, "page layout");
static_assert(offsetof(struct weir_status_page, executed) == 256, "page layout");
static_assert(offsetof(struct weir_status_page, predictions) == 280, "page layout");
static_assert(offsetof(struct weir_status_page, demand_time) == 304, "page layout");
static_assert(offsetof(struct weir_status_page, speculative) == 312, "page layout");
static_assert(offsetof(struct weir_status_page, comparing) == 336, "page layout");
static_assert(offsetof(struct weir_status_page, busy_period) == 344, "page layout");
static_assert(offsetof(struct weir_status_page, demand_sms) == 376, "page layout");
static_assert(offsetof(struct weir_status_page, partial_leaves) == 384, "page layout");
static_assert(offsetof(struct weir_status_page, unused) == 392, "page layout");
static_assert(offsetof(struct weir_status_page, loops) == 424, "page layout");
static_assert(offsetof(struct weir_status_page, loops_blocked) == 448, "page layout");
static_assert(offsetof(struct weir_status_page, yield_asks) == 464, "page layout");
static_assert(offsetof(struct weir_status_page, unused1) == 488, "page layout");
static_assert(offsetof(struct weir_status_page, overrun) == 512, "page layout");
static_assert(offsetof(struct weir_status_page, given_sms) == 520, "page layout");
static_assert(offsetof(struct weir_status_page, worker_kernel) == 400, "page layout");
static_assert(offsetof(struct weir_status_page, worker_parts) == 408, "page layout");
