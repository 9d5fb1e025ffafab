/* The ResourceSlices of this node: its GPUs as devices that claims share. Pure.
 *
 * All slices are one pool, and each has one GPU: the scheduler of Kubernetes 1.34 compares a
 * request with the first device of a slice only (README.md). The slice of a GPU that is unhealthy,
 * or not offered to claims, has no device. */
#pragma once

struct config;
struct inventory;

/* The slice of GPU number @at, for free(); NULL: no memory. @node_uid: of the Node object, which
 * owns the slice, so that it goes with the node. */
char *slice_format(const struct config *config, const struct inventory *inventory, unsigned at,
		   const char *node_uid);
/* Its path in the API server, with @query behind it, for free(). */
char *slice_path(const struct config *config, unsigned at, const char *query);
