/* Weir as a driver for dynamic resource allocation: pods ask for GPUs by ResourceClaim.
 *
 *   publisher   tells the scheduler what there is: ResourceSlices
 *   this file   the socket by which the kubelet finds the driver and calls it
 *   preparer    answers the kubelet when a pod with a claim starts or has ended
 *   ledger      the claims that are prepared
 *   kept        shares that pods still have from the device plugin
 *
 * The kubelet looks at each socket in its folder plugins_registry, also after its own restart. If
 * the socket is removed, the driver makes it again. */
#pragma once

#include "dra/kept.h"
#include "dra/ledger.h"
#include "dra/preparer.h"
#include "dra/publisher.h"
#include "dra/sweep.h"
#include "rpc/rpc.h"
#include "weir/loop.h"

struct config;
struct driver;
struct inventory;

struct dra {
	const struct config *config;
	struct rpc *rpc;
	struct api_client *api;
	struct ledger ledger;
	struct kept kept;
	struct publisher publisher;
	struct preparer preparer;
	struct sweep sweep;
	struct loop_timer timer; /* looks at the socket */
	struct rpc_server *server;
	char socket[RPC_PATH_MAX];
	void (*freed)(struct dra *dra);
};

/* @freed: claims have ended. Everything else must outlive it. 0 or a negative errno. */
int dra_init(struct dra *dra, struct loop *loop, struct rpc *rpc, const struct config *config,
	     const struct driver *driver, struct inventory *inventory,
	     void (*freed)(struct dra *dra));
/* Accepts a zeroed one. Prepared claims stay prepared, and slices stay published: the kubelet
 * deletes them if the driver stays away. */
void dra_deinit(struct dra *dra);
/* GPUs have appeared, or their health has changed. */
void dra_look(struct dra *dra);
