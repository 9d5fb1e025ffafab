/* Reads what the scheduler allocated for a ResourceClaim, from the API server's JSON. Pure. */
#pragma once

#include "weir/claims.h"

#define DRA_DRIVER    "gpu.weir.dev"
#define DRA_ERROR_MAX 512u /* with NUL; the kubelet puts it into the pod's event */

/* The claim must have the UID @uid. @out gets the devices of our driver on the node @node; its
 * memory and shares are 0 where the allocation has no capacity. NULL: @error says why; a claim that
 * has no part on this node is one reason. */
struct claim *claim_parse(const char *text, size_t size, const char *uid, const char *node,
			  char error[DRA_ERROR_MAX]);

/* False: the claim @uid exists no more, or its allocation is not on @node. For answers with status
 * 200 or 404. */
bool claim_lives(long status, const char *text, size_t size, const char *uid, const char *node);
