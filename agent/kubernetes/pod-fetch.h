/* One pod of any node, or of none yet, by a single request to the API server. */
#pragma once

#include "kubernetes/podlist.h"

#include "weir/loop.h"

#define POD_FETCH_KEEP_NS 5000000000ull /* then an answer is old */

struct config_kubernetes;
struct pod_fetch;

/* @config must outlive it. Bad credentials are an error. */
int pod_fetch_new(struct pod_fetch **out, struct loop *loop,
		  const struct config_kubernetes *config);
void pod_fetch_free(struct pod_fetch *fetch);

enum pod_fetch_result {
	POD_FETCH_RUNNING, /* ask again soon */
	POD_FETCH_FOUND,
	POD_FETCH_NONE,
	POD_FETCH_FAILED, /* the API server does not answer, or refuses */
};

/* Looks at the last answer if it is about this pod and not old, else asks. @out: valid until the
 * handler returns to the loop. */
enum pod_fetch_result pod_fetch_get(struct pod_fetch *fetch, const char *namespace_,
				    const char *name, const struct pod **out);
