/* Runs a policy on the real clock: tells it of clients, wakes it when it wants, writes the hold
 * words that it decides on. A policy without ticks costs no wake-up. */
#pragma once

#include "client.h"
#include "gpu.h"
#include "policy.h"

#include "weir/loop.h"

struct scheduler {
	const struct policy *policy;
	struct loop_timer timer;
	struct gpu **gpus; /* the registry's hash */
};

int scheduler_init(struct scheduler *scheduler, struct loop *loop, const struct policy *policy,
		   struct gpu **gpus);
void scheduler_deinit(struct scheduler *scheduler);

/* @client is on its GPU already, or still. */
int scheduler_add(struct scheduler *scheduler, struct client *client);
void scheduler_remove(struct scheduler *scheduler, struct client *client);
/* Its level is another. */
void scheduler_change(struct scheduler *scheduler, struct client *client);
