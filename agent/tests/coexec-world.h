/* Clients under the policy coexec, on a made-up GPU: how fast each gets on depends on its own
 * workers on an SM and on the others'. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/coexec/memory.h"
#include "policy/run-queue.h"

#define MS      1000000ull
#define CLIENTS 6u
#define THINGS  2u /* that the GPU has one of: arithmetic, memory */
#define FIT     8u /* workers of a kernel that an SM holds */

/* What a client runs. Times are in ns. */
struct program {
	double uses[THINGS]; /* the part of each thing that it takes, alone */
	double needs;        /* workers on an SM that get almost all of its speed */
	double harm;         /* the part of the others' speed that it costs, beside the things */
	uint64_t launch;     /* a launch, alone */
	bool unbounded;      /* its workers cannot be bounded */
	double tax;          /* the part of its speed that its form costs */
	double gaps;         /* the part of the time that lies between its launches */
	bool silent;         /* it reports nothing as done */
	uint64_t pause;      /* in which it has no work, at the end of every 25 ms */
};

extern const struct program arithmetic, streaming, poison, taxed, closed;

extern struct coexec_world {
	struct run_queues queues;
	struct coexec_memory found;
	struct run_queue_entry entries[CLIENTS];
	const struct program *programs[CLIENTS];
	double done[CLIENTS], reported[CLIENTS]; /* ns of work */
	unsigned launched[CLIENTS];              /* workers of the launch that runs */
	unsigned n;
	uint64_t now, most_held[CLIENTS], held_since[CLIENTS];
	bool blocked;      /* higher levels run */
	unsigned flatters; /* workers of client 0 that seem fast during a search; 0: none do */
} world;

/* Nothing is known of any kernel. */
int world_set_up(void **state);
#define WORLD_TEST(name) cmocka_unit_test_setup(name, world_set_up)

/* New clients, and a run queue. What was found of kernels stays. */
void begin(unsigned n, const struct program *const *programs);
const struct coexec_plan *plan(void);
/* @ns go by, and every plan of that time must fit on an SM. */
void pass(uint64_t ns);
/* The same; returns the work of all in a ns. */
double throughput(uint64_t ns);
/* The throughput of the best numbers of workers of two programs. Begins anew. */
double best_of_pair(const struct program *const *programs);

/* Each was measured alone. */
void know_alone(unsigned n, const struct program *const *programs);
/* Both were tried at the same time. */
void know_pair(const struct program *a, const struct program *b, double speed_up);
