/* The five methods that the kubelet calls: a message in, a message out. plugin.c has the
 * connection; allocator.c and container-spec.c decide. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/rpc.h"

#define STREAMS_MAX 8u /* open ListAndWatch calls; the kubelet has one */

struct claims;
struct config;
struct driver;
struct inventory;

/* Of containers, since the configuration was read. */
struct plugin_counters {
	uint64_t allocated, refused, waiting;
};

struct service {
	const struct config *config;
	const struct driver *driver;
	const struct inventory *inventory;
	const struct claims *claims; /* prepared; NULL: none */
	bool cut;                    /* claims have some of the shares that would be offered */
	struct rpc_call *streams[STREAMS_MAX];
	unsigned n_streams;
	struct plugin_counters counters;
	/* The first ListAndWatch stream was opened, or the peer ended the last one. */
	void (*watched)(struct service *service);
	void (*unwatched)(struct service *service);
};

/* For rpc_server_new(); the owner is a struct service. */
extern const struct rpc_service service_methods;

/* Sends the current devices to all open streams. */
void service_push(struct service *service);
/* Updates the CDI specification if the configuration uses CDI. False: @error says why not.
 */
#define SERVICE_ERROR_MAX 256u
bool service_name_gpus(const struct service *service, char error[SERVICE_ERROR_MAX]);
/* Forgets the calls of a closed server. */
void service_reset(struct service *service);
