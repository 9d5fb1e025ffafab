/* When launches are sampled, and what a sample teaches: how long its kernel takes, how good
 * predictions are, and in which form the kernel is to run. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"

#include "weir/protocol.h"

struct learning {
	/* As in the status page. */
	uint64_t predictions, prediction_error;
	/* Sums over samples, older ones counting less: their time, and their time multiplied by the
	 * cost of an eviction of their kernel. */
	double run_time, eviction_cost;

	uint64_t sampled_at, due_at; /* ns */
	bool late;                   /* something ran far longer than predicted */
};
/* Worker. */
PER_CLIENT(learning)

/* A launch may wait until lower-level kernels have left, or end. */
static inline bool learn_waits_for_lower(const struct client *client,
					 const struct level_binding *binding)
{
	return client->concurrent && load_relaxed(&control_page(binding)->below);
}

/* Columns of the table. */
void learn_open(struct client *client);
void learn_look(struct client *client, struct tick *tick);
void learn_drive(struct client *client, struct tick *tick);
void learn_work(struct client *client, struct tick *tick);
