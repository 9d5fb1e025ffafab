/* The first launch of a kernel. Nobody knows how long it takes, and many programs are one launch of
 * minutes. So while somebody above shares the GPU, it waits a moment for the form that leaves
 * soonest, which is compiled before the others. If that takes too long, it runs natively.
 *
 * The program's thread waits here, before anything of the launch is done. The worker makes the
 * record (tuning_first()), has the forms compiled and loads them. */
#pragma once

#include "client/level-binding.h"
#include "client/stream.h"
#include "client/subsystem.h"
#include "measure/sample.h"

struct first_launch {
	_Atomic int state; /* of `of`: enum in first-launch.c */
	struct sampled of; /* the launch that the worker is asked about */
};
PER_CLIENT(first_launch)

/* ns that a first launch waits; 0: it does not. */
extern uint64_t first_launch_wait_ns;
extern uint64_t first_launch_altogether_ns; /* that a process waits */

/* Reads WEIR_FIRST_LAUNCH_MS. */
void first_launch_settings(void);

/* Launch path: does such a launch wait? @predicted: ns; 0: not known. */
static inline bool first_launch_waits(const struct level_binding *binding, uint64_t predicted)
{
	return !predicted && binding_is_below(binding) && first_launch_wait_ns;
}

/* Is everything there to launch the kernel @of in a form? Asks for what is missing. */
typedef bool first_launch_ready_fn(struct stream *stream, const struct sampled *of);

/* Returns when @ready, when there will be no forms, or when it has taken too long. Once for each
 * kernel and geometry; a process waits for first_launch_altogether_ns. */
void first_launch_await(struct stream *stream, const struct sampled *of,
			first_launch_ready_fn *ready);

/* Columns of the table. */
void first_launch_look(struct client *client, struct tick *tick);
void first_launch_drive(struct client *client, struct tick *tick);
