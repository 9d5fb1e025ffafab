/* Forgets prepared claims that the API server no longer has. The kubelet unprepares each claim, but
 * a kubelet that lost its state cannot. One claim at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct api_client;
struct config;
struct ledger;

struct sweep {
	const struct config *config;
	struct ledger *ledger;
	struct api_client *api;
	bool running;
	size_t at; /* the claim that is being looked at */
	char uid[64];
};

/* Starts, unless it runs. */
void sweep_start(struct sweep *sweep);
