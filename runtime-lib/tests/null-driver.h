/* A driver that does nothing but be observable: what libweir asks of it is counted, and what it
 * answers can be set. For tests of libweir's own decisions; whatever depends on a GPU's behaviour
 * is tested on the simulated one. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define NULL_SMS       4u
#define NULL_OCCUPANCY 8u        /* blocks of any kernel on an SM */
#define NULL_FORM      0x700000u /* handles from here on are kernels in forms */
#define NULL_WIDE      0x700800u /* one in a form with fewer blocks on an SM */
#define NULL_OPS       4096u

/* What was put into a stream, in its order. */
enum null_op_kind { NULL_LAUNCH, NULL_GATE, NULL_COPY };

#define NULL_WAITS 4

struct null_op {
	enum null_op_kind kind;
	void *stream, *function;
	unsigned grid[3], block[3], attributes;
	int priority;     /* of a launch, by its attribute; 1: none */
	uint64_t address; /* that is waited for, or copied to */
	unsigned n_waits; /* of a gate; the first is that of `address` */
	struct {
		uint64_t address, value;
		unsigned flags;
	} waits[NULL_WAITS];
	size_t size; /* of packed parameters */
	uint8_t parameters[256];
};

struct null_driver {
	_Atomic int launches, graph_launches, gates, waits_in_gates, events_recorded, registered;
	_Atomic int markers_recorded;          /* of these events: without a time */
	_Atomic int streams_busy, events_busy; /* what queries answer */
	_Atomic int last_busy;                 /* and of the event that was recorded last */
	_Atomic int streams_stuck;             /* queries of streams do not return, */
	_Atomic int queries_stuck;             /* how many are in one; */
	_Atomic int launches_stuck;            /* nor launches; */
	_Atomic int launches_waiting;          /* those that do not */
	void *_Atomic captured;                /* the stream */
	_Atomic int spoilt;                    /* queries while one was */
	_Atomic int end_fails;                 /* what ending a capture answers */
	_Atomic int refuses_pages;             /* cuMemHostRegister has no memory */
	_Atomic int pages_refused;
	_Atomic int contexts_destroyed, streams_destroyed;
	_Atomic int destroy_fails;        /* what destroying a context answers */
	_Atomic uint64_t elapsed_ns;      /* of every sample */
	_Atomic uint64_t form_elapsed_ns; /* but of those of kernels in forms; */
	_Atomic uint64_t wide_elapsed_ns; /* and of NULL_WIDE; 0: as of those */
	_Atomic size_t n_ops;             /* may be set to 0; further ones are not kept */
	struct null_op ops[NULL_OPS];

	_Atomic int modules_loaded, modules_unloaded, synchronised;
	void (*while_synchronising)(void);       /* called once, by the next wait for a context */
	_Atomic int listed;                      /* kernels k0, k1 … of each code; */
	_Atomic int lists;                       /* how often they were counted */
	_Atomic int full;                        /* how many allocations find no memory */
	_Atomic int loads_fail;                  /* what loading a module answers */
	_Atomic int forms_fail;                  /* what launching a kernel in a form answers */
	_Atomic int shared_max, form_shared_max; /* dynamic shared memory that a function may be
						    given at most; and one that is called "form" */
	_Atomic int occupancy;                   /* blocks on an SM; 0: NULL_OCCUPANCY */
	_Atomic int mps;                         /* the GPU is under MPS */
	_Atomic int priority;                    /* of each stream that is not a default one */
	_Atomic int priorities_fail;             /* what a launch with a priority answers */
	_Atomic int parameters;                  /* of every function, 8 bytes each */
	_Atomic int globals;                     /* bytes of every variable, 0: there are none */
	_Atomic uint32_t *_Atomic watched;       /* a word of libweir's; NULL: none */
	_Atomic uint32_t seen; /* what it was at the last launch or synchronisation */
	_Atomic int broken;    /* what is answered of all streams and events: an
				  error of a kernel; 0: there was none */
};

/* In the driver. Tests find it by dlsym(). */
extern struct null_driver null_driver;
