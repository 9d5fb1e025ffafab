/* The five methods that the kubelet calls: messages in, messages out. plugin.c has the connection,
 * allocator.c and container-spec.c the decisions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc.h"

#define STREAMS_MAX 8u /* open ListAndWatch calls; the kubelet has one */

struct config;
struct driver;
struct inventory;

struct service {
	const struct config *config;
	const struct driver *driver;
	const struct inventory *inventory;
	struct rpc_call *streams[STREAMS_MAX];
	unsigned n_streams;
	/* The first ListAndWatch was opened, or the last one ended by the peer. */
	void (*watched)(struct service *service);
	void (*unwatched)(struct service *service);
};

/* For rpc_server_new(), with a struct service as its owner. */
extern const struct rpc_service service_methods;

/* Sends the devices as they are now to whoever watches. */
void service_push(struct service *service);
/* Brings the CDI specification up to date, where GPUs are named by it. False: @error says why not.
 */
#define SERVICE_ERROR_MAX 256u
bool service_name_gpus(const struct service *service, char error[SERVICE_ERROR_MAX]);
/* The server is closed: forgets its calls. */
void service_reset(struct service *service);
