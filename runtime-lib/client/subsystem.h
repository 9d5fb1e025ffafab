/* The table of subsystems: what each does when a client begins or ends, when the process forks, and
 * each time that the worker looks at a client. The rows stand in entry/subsystems.c, which alone
 * knows all subsystems. Nothing here is on the launch path. */
#pragma once

#include "shim/driver.h"

struct client;
struct function;
struct level_binding;
struct stream;

/* Of all streams of a client. */
struct totals {
	uint64_t begun;       /* launches */
	uint64_t outstanding; /* launches that are not known to be finished */
	/* ns of GPU time, of all launches and of the finished ones, but for those of loops. */
	uint64_t predicted, executed;
};

/* One look of the worker at a client. Subsystems fill it in as the columns say. */
struct tick {
	uint64_t now;
	uint64_t passed;     /* ns since the last look at this client */
	uint64_t unattended; /* ns since the worker last asked the driver about it */
	bool hurried;        /* some of its work is finished, and others wait for that */
	bool driven;         /* `drive` has run */
	/* Read once before `look` and once before `work`, where it is never NULL. From the row of
	 * levels on it is the one of the lowest level at which the client has work. */
	const struct level_binding *binding;

	/* look: */
	struct totals totals; /* read again after `drive` */
	bool moved;           /* launches have begun since the last look */
	/* Gates are closed, or may close at any time, or the agent must know what is done. */
	bool contended;
	bool slo;       /* the pod has a latency objective */
	bool waited;    /* others wait for this client's kernels, or did so lately */
	bool rebinding; /* another level is to be settled */
	bool samples;   /* measured launches have not been read */
	bool flying;    /* launches in forms are in flight */
	bool forms;     /* kernels' forms are to be made or launched; */
	bool awaited;   /* a launch waits for them */
	bool uncounted; /* the client may have work that is not counted */
	bool due;       /* the moment has come for which a row asked by @alarm */
	uint64_t alarm; /* ns until the next look at the latest; 0: any */

	/* work: */
	bool changing;   /* a change of level is going on */
	bool demanding;  /* demand was shown before this look, or is shown now; */
	bool demand_now; /* the latter */
	bool lately;     /* there was work lately, of a client with a minimum rate */
};

struct subsystem {
	const char *name;

	/* Once, before the first client: the environment. */
	void (*settings)(void);
	/* Before each client, by one thread at a time: threads, if they do not run. 0 or an errno.
	 */
	int (*start)(void);
	/* A client takes a slot: its entry of the table @state is cleared, then @init runs. No
	 * driver call. */
	void *state;
	size_t state_size; /* of an entry */
	void (*init)(struct client *client);
	/* Afterwards, with its context current; and when it is live. */
	void (*open)(struct client *client);
	void (*ready)(void);

	/* A stream's record was made; a stream is gone, and the worker is through with it. */
	void (*stream_made)(struct stream *stream);
	void (*stream_gone)(struct stream *stream);
	/* Any thread: the kernel's code is being unloaded. */
	void (*code_gone)(const struct function *function);

	/* The worker's look at a client, in three passes over the table. Without the driver, */
	void (*look)(struct client *client, struct tick *tick);
	/* with the driver and the client's context current, if the first pass found a reason, */
	void (*drive)(struct client *client, struct tick *tick);
	/* and without the driver again. */
	void (*work)(struct client *client, struct tick *tick);
	/* Worker, after its looks at all clients. */
	void (*round)(uint64_t now);

	/* The client's context ends. False: a thread may go on with the client's state, so that no
	 * row forgets it and all rows stop it. */
	bool (*leave)(const struct client *client);
	/* Afterwards; the process ends. The last row comes first. */
	void (*forget)(struct client *client);
	void (*stop)(struct client *client);
	/* In a forked child. */
	void (*fork)(void);
};

extern const struct subsystem subsystems[];
extern const size_t n_subsystems;

#define each_subsystem(function, ...)                      \
	for (size_t row_ = 0; row_ < n_subsystems; row_++) \
		if (subsystems[row_].function)             \
	subsystems[row_].function(__VA_ARGS__)

/* As they end: in reverse order. */
#define each_subsystem_back(function, ...)        \
	for (size_t row_ = n_subsystems; row_--;) \
		if (subsystems[row_].function)    \
	subsystems[row_].function(__VA_ARGS__)
