/* The model behind sim_run(): clients with requests, and a GPU that one of them has, or two. */
#ifndef WEIR_AGENT_SIM_MODEL_H
#define WEIR_AGENT_SIM_MODEL_H

#include "sim/sim.h"
#include "policy/run-queue.h"

struct request {
	uint64_t arrived, length;
};

struct actor {
	struct run_queue_entry entry;
	const struct trace_client *traits;
	struct sim_client *stats;
	struct actor *prev, *next; /* of the runnable of its level */
	struct actor *changed;     /* the next of those that the agent has not looked at */
	bool is_changed, runnable, started;
	/* Its requests: a ring that grows. */
	struct request *queue;
	uint32_t room, first, n;
	uint64_t left, outstanding; /* ns, of the first and of all */
	uint64_t launch;            /* ns left of the one that has begun; 0: none has */
	uint64_t untold;            /* ns that it ran since the agent's last look */
	uint64_t active_since, stood_since;
	uint64_t window_ran, window_busy_since;
};

struct arrival {
	uint64_t at;
	uint32_t client;
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
	uint64_t now, random;

	struct arrival *heap; /* of those that come `every` so often */
	size_t n_heap, at_work;

	enum phase phase;
	struct actor *current, *last; /* on the GPU; the last whose context was there */
	struct actor *ending;         /* NULL, or whose launch ends beside the current one's */
	uint64_t phase_end, slice_end;

	struct actor *changed, *last_changed; /* as they changed */
	uint64_t look_at, timer_at;
	uint64_t window_end;
};

/* sim-work.c: what clients have to do. */

/* A line of the log, if there is one. */
void sim_note(const struct sim *sim, const char *event, const struct actor *actor);

/* The agent will see @actor when it looks. */
void sim_mark_changed(struct sim *sim, struct actor *actor);

/* To be called when it has got work or none, or is held or not. */
void sim_set_runnable(struct sim *sim, struct actor *actor);

/* A request of @length ns has come; dropped where SIM_QUEUE_MAX wait. -ENOMEM. */
int sim_arrive(struct sim *sim, struct actor *actor, uint64_t length);

/* It has waited since `stood_since`. */
void sim_stood(struct sim *sim, struct actor *actor);

/* Its first request begins, or goes on. */
void sim_begin(struct sim *sim, struct actor *actor);

/* Its first request is done. -ENOMEM. */
int sim_finish(struct sim *sim, struct actor *actor);

/* sim-gpu.c: who runs. */

bool sim_on_gpu(const struct sim *sim, const struct actor *actor);

/* What the GPU does now. -ENOMEM. */
int sim_gpu_update(struct sim *sim);

/* When that changes, if nobody else does anything; POLICY_NEVER. */
uint64_t sim_gpu_event(const struct sim *sim);

/* Time goes on to @to, at which nothing has changed yet. */
void sim_advance(struct sim *sim, uint64_t to);

#endif
