/* A lane: one stream, some words on the device, as many in pinned host memory, and what both must
 * hold once everything issued so far is done. An action changes the words and the expectation
 * alike; actions do not commute, so any operation out of order shows in the end.
 */
#pragma once

#include "workloads/stream-order/driver.h"
#include "workload.h"

#define LANE_WORDS   128u
#define LANE_THREADS 64u /* two blocks: the smallest GPU holds a cooperative launch of them */
#define STEP_THREADS 16u /* eight blocks: it does not hold these at once */

enum lane_kind { LANE_BLOCKING, LANE_NON_BLOCKING, LANE_LEGACY, LANE_PER_THREAD, LANE_KINDS };

/* What all lanes of one thread share. */
struct kit {
	const struct stream_calls *calls; /* SPELLINGS of them */
	CUfunction step, rotate;
	struct random random;
	uint32_t delay; /* steps are delayed by up to so many iterations */
	struct host_call *host_calls;
};

struct lane {
	struct kit *kit;
	unsigned number;
	enum lane_kind kind;
	CUstream stream; /* NULL for the default ones */
	CUevent event;
	CUdeviceptr data, flag; /* flag: a word for memory operations */
	CUdeviceptr arrived;    /* for cooperative launches */
	uint32_t *host;
	uint32_t flag_value;
	uint32_t expected_data[LANE_WORDS], expected_host[LANE_WORDS];
};

enum action_kind {
	ACTION_STEP,
	ACTION_SET,
	ACTION_TO_HOST,
	ACTION_TO_DEVICE,
	ACTION_HOST,
	ACTIONS
};

/* Steps and host functions change all words; copies and settings a few, so that a mistake is not
 * soon overwritten. */
struct range {
	uint32_t first, count;
};

struct action {
	enum action_kind kind;
	struct range range;
	uint32_t multiply, add, delay;
};

/* An action on the host, in stream order. They live until lane_forget_host_calls(). */
struct host_call {
	struct host_call *next;
	struct lane *lane;
	struct action action;
	bool check;      /* compare with @before: not in graphs, which run more than once */
	uint32_t before; /* checksum of the host words that it must find */
};

void lane_init(struct lane *lane, struct kit *kit, unsigned number, enum lane_kind kind);
void lane_deinit(struct lane *lane);

/* A spelling and a stream handle that mean this lane, chosen at random. */
struct target {
	const struct stream_calls *calls;
	CUstream stream;
};
struct target lane_target(const struct lane *lane);
/* For the thread's legacy default stream. */
struct target lane_legacy(struct kit *kit);

struct range range_random(struct kit *kit);
struct action action_random(struct kit *kit);
/* Issues it into the lane's stream, which may be under capture; the expectation is the caller's. */
void action_issue(struct lane *lane, const struct action *action, bool captured);
void action_expect(struct lane *lane, const struct action *action);
void action_host_function(void *host_call);
struct host_call *host_call_new(struct lane *lane, const struct action *action);

/* Everything issued later into @after waits for everything issued so far into @before. */
void lane_order(struct lane *before, struct lane *after);

/* Copies some words of one lane to another in stream @to, and expects that. */
void lane_copy(struct lane *from, struct lane *to, const struct target *target);

/* Fails the program when the words are wrong. The lane must be idle. */
void lane_check(const struct lane *lane);

/* No host call of this kit may be pending. */
void kit_forget_host_calls(struct kit *kit);
