/* A checked stream: a stream, words on the device, as many in pinned host memory, and the expected
 * values of both once everything issued is done. An action changes words and expectation alike.
 * Actions do not commute, so an operation out of order shows in the end. */
#pragma once

#include "workloads/stream-order/driver.h"
#include "workload.h"

#define STREAM_WORDS   128u
#define STREAM_THREADS 64u /* two blocks: the smallest GPU holds a cooperative launch of them */
#define STEP_THREADS   16u /* eight blocks: it does not hold these at once */

enum stream_kind {
	STREAM_BLOCKING,
	STREAM_NON_BLOCKING,
	STREAM_LEGACY,
	STREAM_PER_THREAD,
	STREAM_KINDS
};

/* What all streams of one thread share. */
struct kit {
	const struct stream_calls *calls; /* SPELLINGS of them */
	CUfunction step, rotate;
	CUfunction dependent; /* a step with programmatic dependence; NULL: the GPU has none */
	struct random random;
	uint32_t delay; /* steps are delayed by up to so many iterations */
	struct host_call *host_calls;
};

struct checked_stream {
	struct kit *kit;
	unsigned number;
	enum stream_kind kind;
	CUstream stream; /* NULL for the default ones */
	CUevent event;
	CUdeviceptr data, flag; /* flag: a word for memory operations */
	CUdeviceptr arrived;    /* for cooperative launches */
	uint32_t *host;
	uint32_t flag_value;
	uint32_t expected_data[STREAM_WORDS], expected_host[STREAM_WORDS];
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

/* An action on the host, in stream order. They live until checked_stream_forget_host_calls(). */
struct host_call {
	struct host_call *next;
	struct checked_stream *checked;
	struct action action;
	bool check;      /* compare with @before: not in graphs, which run more than once */
	uint32_t before; /* checksum of the host words that it must find */
};

void checked_stream_init(struct checked_stream *checked, struct kit *kit, unsigned number,
			 enum stream_kind kind);
void checked_stream_deinit(struct checked_stream *checked);

/* A random spelling and stream handle that mean this stream. */
struct target {
	const struct stream_calls *calls;
	CUstream stream;
};
struct target checked_stream_target(const struct checked_stream *checked);
/* For the thread's legacy default stream. */
struct target checked_stream_legacy(struct kit *kit);

struct range range_random(struct kit *kit);
struct action action_random(struct kit *kit);
/* Issues the action into the stream, which may be under capture. The caller updates the
 * expectation. */
void action_issue(struct checked_stream *checked, const struct action *action, bool captured);
void action_expect(struct checked_stream *checked, const struct action *action);
void action_host_function(void *host_call);
struct host_call *host_call_new(struct checked_stream *checked, const struct action *action);

/* Everything issued later into @after waits for everything issued so far into @before. */
void checked_stream_order(struct checked_stream *before, struct checked_stream *after);

/* Copies some words from one checked stream to the other in stream @to, and updates the
 * expectation. */
void checked_stream_copy(struct checked_stream *from, struct checked_stream *to,
			 const struct target *target);

/* Fails the program when the words are wrong. The stream must be idle. */
void checked_stream_check(const struct checked_stream *checked);

/* No host call of this kit may be pending. */
void kit_forget_host_calls(struct kit *kit);
