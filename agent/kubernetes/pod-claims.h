/* Shares that containers have by resource claims. The device plugin writes the claims of this node
 * into a file before their containers start, and the pod says which claims each container uses. */
#pragma once

#include "kubernetes/podlist.h"

#include "weir/claims.h"
#include "weir/file-watch.h"

struct pod_claims;
typedef void pod_claims_fn(struct pod_claims *claims);

/* Embedded in its owner. */
struct pod_claims {
	const char *path;
	struct file_watch watch;
	struct claims claims;
	pod_claims_fn *changed;
};

/* Reads the file, and again when it changes. @path: empty: there are no claims. */
int pod_claims_init(struct pod_claims *claims, struct loop *loop, const char *path,
		    pod_claims_fn *changed);
void pod_claims_deinit(struct pod_claims *claims);

/* Gives the containers of @pod what their claims say. A container with several claims of GPUs gets
 * the smallest. Pure. True: something changed. */
bool pod_claims_apply(struct pod *pod, const struct claims *claims);
