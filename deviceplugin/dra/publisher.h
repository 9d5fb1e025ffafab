/* Keeps this node's ResourceSlices in the API server as they should be. A round applies one after
 * another, which creates or changes it, or does nothing; then it deletes those of GPUs that are no
 * more. Rounds repeat now and then, because the kubelet deletes all slices when it starts, and when
 * the driver is away. */
#pragma once

#include <stdbool.h>

#include "weir/loop.h"

#define PUBLISHER_SOON   NS_PER_S         /* between the first rounds after a change */
#define PUBLISHER_PERIOD (120 * NS_PER_S) /* between later ones */
#define PUBLISHER_EAGER  5u               /* rounds that are soon */

struct api_client;
struct config;
struct inventory;

struct publisher {
	const struct config *config;
	const struct inventory *inventory;
	struct api_client *api;
	struct loop_timer timer;
	char node_uid[64]; /* empty: not known yet */
	unsigned at;       /* the slice that is being sent */
	unsigned eager;    /* rounds left that are soon */
	bool sending;
	bool again;  /* something changed meanwhile */
	bool told;   /* the log says that all is published */
	bool warned; /* that the API server lacks a feature */
};

int publisher_init(struct publisher *publisher, struct loop *loop, struct api_client *api,
		   const struct config *config, const struct inventory *inventory);
void publisher_deinit(struct publisher *publisher);
/* The GPUs changed, or the slice may be gone. */
void publisher_look(struct publisher *publisher);
