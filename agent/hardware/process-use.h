/* Which processes ran on a GPU, as the driver counts it: by NVML's samples. One comes for each
 * process that ran in the last period, 200 ms with driver 580, with the part of it. So a process
 * that lets its stopped channel groups go on by itself is seen, whatever it reports.
 *
 * A call takes about 3 ms. A thread makes them, and only for a while after somebody asked. Where
 * the driver has no samples, that is logged once, and no process is ever seen. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_USE_KEPT        128u         /* processes */
#define PROCESS_USE_INTERVAL_NS 100000000ull /* between two calls */
#define PROCESS_USE_ASKED_NS    500000000ull /* for this long a question counts */
#define PROCESS_USE_PERIOD_NS   100000000ull /* no driver has shorter periods */

struct process_sample {
	pid_t pid;
	uint64_t begin, end; /* of the period, monotonic ns; @begin 0: not known */
	unsigned percent;    /* of it */
};

/* Embedded in the GPU. Zeroed, but for the first two: nobody has asked. */
struct process_use {
	const char *nvml; /* its path; empty: search; NULL: ask nobody */
	const char *id;   /* the GPU's */
	bool began;       /* there is a thread */
	bool failed;      /* there can be none */
	pthread_t thread;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t wake;
	bool ends;
	bool sleeps;                                     /* until it is woken */
	uint64_t asked;                                  /* ns */
	struct process_sample samples[PROCESS_USE_KEPT]; /* the latest of each process */
};

/* Somebody wants to know now, and reads the answers later. Never waits. */
void process_use_ask(struct process_use *use, uint64_t now);
/* The latest sample of @pid; false: there is none. */
bool process_use_find(struct process_use *use, pid_t pid, struct process_sample *out);
void process_use_deinit(struct process_use *use);

/* The process ran for half of a whole period after @since at least. A part of a period is not
 * judged: before @since the process may have run all the time. */
bool process_use_shows(const struct process_sample *sample, uint64_t since);

/* What follows from the driver's samples, in the order of their time; pure. Samples of a time when
 * the wall clock was set are of no use. */
struct process_periods {
	uint64_t last;   /* wall clock, us: end of the last period seen */
	uint64_t period; /* ns, the shortest distance of two ends; 0: not known */
	int64_t offset;  /* ns, wall clock - monotonic, at the last call */
};
/* Before the samples of a call are taken. False: the clock was set, they are to be left out. */
bool process_periods_begin(struct process_periods *periods, uint64_t wall_now, uint64_t now);
struct process_sample process_periods_take(struct process_periods *periods, pid_t pid,
					   uint64_t end_us, unsigned percent);
/* When to call next: after the interval, or when there may be new samples, whatever is earlier. */
uint64_t process_periods_due(const struct process_periods *periods, uint64_t now);
