/* Ten kernels under the policy coexec, on a made-up GPU on which pairs get on as on an H100. Each
 * is a client's; those of one kind share the GPU in proportion. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/coexec/memory.h"
#include "policy/run-queue.h"

#include "coexec-curves.h"

#define MS     1000000ull
#define QUEUED 4u /* launches of a kernel */
#define N      CURVE_KERNELS

extern struct queue_world {
	struct run_queues queues;
	struct coexec_memory found;
	struct run_queue_entry entries[N];
	double done[N];                 /* ns of work */
	uint64_t reported[N], until[N]; /* a kernel's work is done when it has reported `until` */
	uint64_t now, begin, comes[N], ended[N]; /* ended: the last launch */
	unsigned launched[N][QUEUED]; /* workers of the launches that are queued, from `first` on */
	unsigned first[N];
	bool stays[N]; /* it has work all the time */
} world;

/* Nothing is known of any kernel. */
int world_set_up(void **state);
#define WORLD_TEST(name) cmocka_unit_test_setup(name, world_set_up)
/* Runs the tests; SEED=N repeats a run. */
#define run_world_tests(tests) (world_seed(), cmocka_run_group_tests(tests, NULL, NULL))
void world_seed(void);

/* New clients with @work ns each, and a run queue that knows nothing of earlier ones. */
void begin(uint64_t work);
/* All have work again, one behind the other in a random order. */
void come(uint64_t work);
/* A moment goes by. Returns how many clients have work left. */
unsigned step(void);
void pass(uint64_t ns);
/* Until @work of each is done. Returns how many times faster it was than in sequence. */
double finish(uint64_t work);
/* begin() and finish(). */
double run_queue(uint64_t work);
const struct coexec_plan *plan(void);

/* Of a pair that has work all the time, and of which nothing is known. */
struct searched {
	double loss; /* of what the search found, against the best configuration */
	double took; /* time of the search over that of the same work in sequence; 0: it was short
		      */
};
void begin_pair(const struct measured_pair *pair);
#define PAIR_NS (2200 * MS)
struct searched run_pair(const struct measured_pair *pair);
/* All measured pairs run, one behind the other. */
void run_all_pairs(void);
/* Of a configuration of the pair. */
double speed_up_of(const struct measured_pair *pair, unsigned configuration);
