/* Which processes ran on a GPU, as the driver counts it: by NVML's samples. One comes for each
 * process that ran in the last period, 200 ms with driver 580, with the part of it. So a process
 * that lets its stopped channel groups go on by itself is seen, whatever it reports.
 *
 * A call takes about 3 ms. A thread makes them, and only for a while after somebody asked: when the
 * next samples are due, and each 20 ms while they have not come, as when nobody runs. So a sample
 * is known about 20 ms after its period ended (28 ms on an H100, beside a process that kept the
 * driver busy). Where the driver has no samples, that is logged once, and no process is ever seen.
 *
 * A process that runs all the time behind its stop is seen after about 240 ms in the worst case:
 * its period ended too soon after the stop to tell (PROCESS_USE_SURE_NS), and the next one ends 200
 * ms later. On average that takes about 140 ms, as nobody asks in the first 100 ms
 * (PREEMPTION_WATCH_NS). */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_USE_KEPT        128u         /* processes */
#define PROCESS_USE_INTERVAL_NS 20000000ull  /* between two calls */
#define PROCESS_USE_ASKED_NS    150000000ull /* for this long a question counts */
#define PROCESS_USE_SHORTEST_NS 160000000ull /* no driver has shorter periods, says NVML: 1/6 s */
#define PROCESS_USE_LONGEST_NS  1000000000ull
/* The times of stops and samples are not exact, nor is the per cent. So less time than this after a
 * stop cannot be told from time before it. */
#define PROCESS_USE_SURE_NS 10000000ull

struct process_sample {
	pid_t pid;
	uint64_t begin, end; /* of its time, monotonic ns; @begin is as early as it may be */
	unsigned percent;    /* of that time at most */
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
/* There is a sample of some process that ended after @since. */
bool process_use_tells(struct process_use *use, uint64_t since);
void process_use_deinit(struct process_use *use);

/* True: the process ran for at least half of the time after @since, even if it ran all the time
 * before. */
bool process_use_shows(const struct process_sample *sample, uint64_t since);

/* Periods of the driver's samples, in the order of their time; pure. Samples around a change of the
 * wall clock are useless. */
struct process_periods {
	uint64_t last;   /* wall clock, us: end of the last period seen */
	uint64_t period; /* ns, the shortest distance of two ends; 0: not known */
	int64_t offset;  /* ns, wall clock - monotonic, at the last call */
};
/* Before the samples of a call are taken. False: the clock was set; leave them out. */
bool process_periods_begin(struct process_periods *periods, uint64_t wall_now, uint64_t now);
/* A sample that ended at @end_us, of a call for those later than @after_us. If several periods
 * ended in between, it may stand for all of them. */
struct process_sample process_periods_take(struct process_periods *periods, pid_t pid,
					   uint64_t after_us, uint64_t end_us, unsigned percent);
/* When to call next. */
uint64_t process_periods_due(const struct process_periods *periods, uint64_t now);
