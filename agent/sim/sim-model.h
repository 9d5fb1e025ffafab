/* The state behind sim_run(): clients with requests, and a GPU that runs one or two of them. */
#pragma once

#include "sim/sim.h"
#include "policy/coexec/memory.h"
#include "policy/min-rate.h"
#include "policy/run-queue.h"

struct request {
	uint64_t arrived, length;
};

struct actor {
	struct run_queue_entry entry;
	const struct trace_client *traits;
	struct sim_client *stats;
	struct actor *prev, *next;                 /* in sim.runnable of its level */
	struct actor *changed_prev, *changed_next; /* in sim.changed; NULL: not in it */
	bool runnable, started;
	/* Requests: a ring that grows. */
	struct request *queue;
	uint32_t room, first, n;
	uint64_t left, outstanding; /* ns, of the first request and of all */
	uint64_t launch;            /* ns left of the current launch; 0: none */
	uint64_t unseen;            /* ns that it ran since the agent's last look */
	uint64_t active_since, stood_since;
	uint64_t window_ran, window_busy_since;
	/* sim-rates.c's. */
	struct min_rate rate;
	bool out;                     /* it must not run, so that a client gets its minimum rate */
	bool leaves;                  /* it is ahead of its own: its demand does not count */
	bool alone;                   /* nobody else could run at the last look */
	uint64_t rate_ran, rate_busy; /* ns, as of then */
	/* sim-workers.c's. */
	bool on_sms;       /* its launch runs, beside others' or alone, */
	uint32_t bound;    /* with so many workers on an SM, */
	double speed;      /* at this part of its speed alone */
	uint64_t gone_at;  /* when the launch has left; POLICY_NEVER: it need not */
	uint64_t finished; /* ns of work, of launches that have ended */
};

struct arrival {
	uint64_t at;
	uint32_t client;
};

/* Of all clients of a level with work outstanding. */
struct sim_demand {
	unsigned whole; /* clients that need the whole GPU */
	uint32_t sms;   /* that the others need */
};

enum phase { GPU_FREE, GPU_SWITCHING, GPU_RUNNING, GPU_LEAVING };

struct sim {
	const struct sim_options *options;
	const struct trace *trace;
	struct sim_result result;
	struct run_queues queues;
	struct actor *actors;
	struct actor *runnable[WEIR_LEVELS];
	unsigned n_active[WEIR_LEVELS];
	uint8_t sliced_level; /* its clients take no turns; WEIR_LEVELS: there is none */
	uint64_t now, random;

	struct arrival *heap; /* of clients with `every`; the earliest first */
	size_t n_heap, at_work;

	enum phase phase;
	struct actor *current, *last; /* on the GPU; the last one there */
	struct actor *ending;         /* its launch ends beside the current one's; or NULL */
	uint64_t phase_end, slice_end;

	struct sim_demand demand[WEIR_LEVELS];
	struct actor *beside; /* of a lower level than `current`; or NULL */
	uint32_t beside_room; /* SMs that it has */
	uint64_t beside_end;  /* when it has left; or POLICY_NEVER */

	struct actor *changed; /* since the agent's last look, in order of time */
	uint64_t look_at, timer_at;
	uint64_t rates_at; /* the next look at minimum rates; or POLICY_NEVER */
	uint64_t window_end;

	bool workers; /* sim-workers.c says who runs */
	struct coexec_memory memory;
};

/* sim-work.c: the clients' requests. */

/* Writes a line to the log, if there is one. */
void sim_note(const struct sim *sim, const char *event, const struct actor *actor);
/* The agent will see @actor at its next look. */
void sim_mark_changed(struct sim *sim, struct actor *actor);
/* Its demand counts from now on (@n: 1), or not any more (-1). */
void sim_count_active(struct sim *sim, const struct actor *actor, int n);
/* Call when its work or its hold has changed. */
void sim_set_runnable(struct sim *sim, struct actor *actor);
/* A request of @length ns comes; it is dropped if SIM_QUEUE_MAX wait. -ENOMEM. */
int sim_arrive(struct sim *sim, struct actor *actor, uint64_t length);
/* Notes its wait since `stood_since`. */
void sim_stood(struct sim *sim, struct actor *actor);
/* Its first request begins or goes on. */
void sim_begin(struct sim *sim, struct actor *actor);
/* Its first request is done. -ENOMEM. */
int sim_finish(struct sim *sim, struct actor *actor);

/* sim-gpu.c: which clients run. */

bool sim_on_gpu(const struct sim *sim, const struct actor *actor);
/* Lets the GPU act on what has changed. -ENOMEM. */
int sim_gpu_update(struct sim *sim);
/* Begins the next launch of its first request. */
void sim_launch(struct actor *actor);
/* The others of its level come first. */
void sim_put_last(struct sim *sim, struct actor *actor);
/* When a launch of @actor has left that is evicted now; or POLICY_NEVER. */
uint64_t sim_gone_at(const struct sim *sim, const struct actor *actor);
/* When to call that next if nothing else happens; or POLICY_NEVER. */
uint64_t sim_gpu_event(const struct sim *sim);
/* Time passes until @to. Nothing changes before. */
void sim_advance(struct sim *sim, uint64_t to);
/* @actor does @work ns of work, and is charged @charged ns. */
void sim_spend(struct sim *sim, struct actor *actor, uint64_t work, uint64_t charged);

/* sim-spatial.c: clients on the SMs that those above do not need. */

/* Call when the client's work begins (@n: 1) or is all done (-1). */
void sim_count_demand(struct sim *sim, const struct actor *actor, int n);
/* Those above leave it a part of the GPU. */
bool sim_may_share(const struct sim *sim, const struct actor *actor);
/* Its launch goes on in that part. */
void sim_share(struct sim *sim, struct actor *actor);
/* As sim_gpu_update() and sim_gpu_event(). */
int sim_spatial_update(struct sim *sim);
uint64_t sim_spatial_event(const struct sim *sim);
/* ns of its launch that the client beside does in the next @passed ns. */
uint64_t sim_beside_runs(const struct sim *sim, uint64_t passed);

/* sim-workers.c: kernels of several clients on the same SMs. */

/* Finds out whether clients run so. Call it when all are there. */
void sim_workers_set(struct sim *sim);
/* If they do: as sim_gpu_update() and sim_gpu_event(). */
int sim_workers_update(struct sim *sim);
uint64_t sim_workers_event(const struct sim *sim);
/* @passed ns go by. Returns how many clients ran. */
unsigned sim_workers_advance(struct sim *sim, uint64_t passed);
/* Clients report what they have done. Call it before a decision. */
void sim_workers_report(struct sim *sim);
/* When the agent looks at speeds; or POLICY_NEVER. */
uint64_t sim_workers_look_at(const struct sim *sim);

/* sim-slices.c: the hardware's slices. */

/* Finds the level whose clients share the GPU so. */
void sim_slices_set(struct sim *sim);
/* How long @actor is served, in ns, if others wait. */
uint64_t sim_slice(const struct sim *sim, const struct actor *actor);

/* sim-rates.c: minimum rates. */

/* The agent looks at them at `rates_at`, which it moves on. */
void sim_rates_look(struct sim *sim);
