/* The pods of this node, from the API server: listed once, then watched. While the server is away,
 * the last known pods stay; the next list corrects them. */
#pragma once

#include "kubernetes/podlist.h"

#include "weir/loop.h"

#define PODS_LINE_MAX      (4u << 20)  /* one event of a watch */
#define PODS_PAGE_MAX      (64u << 20) /* one page of a list */
#define PODS_PAGE_ENTRIES  250
#define PODS_WATCH_SECONDS 290 /* the server ends a watch then, and a new one begins */

struct config_kubernetes;
struct pods;

/* A pod or pods_connected() changed. Called from the loop, once for many changes. */
typedef void pods_changed_fn(void *userdata);

/* Starts to list and watch; @config must outlive the pods. -EINVAL and others: bad credentials in
 * @config, which the log explains. A server that is away is no error. */
int pods_new(struct pods **out, struct loop *loop, const struct config_kubernetes *config,
	     pods_changed_fn *changed, void *userdata);
void pods_free(struct pods *pods);

/* Finds a pod by its UID in the API, or by the UID in a static pod's cgroup path. NULL: unknown.
 * The pod is valid until the handler returns to the loop. */
const struct pod *pods_find(struct pods *pods, const char *uid);
/* The same of a container's pod. NULL also if there are no @pods, or it is in none. */
static inline const struct pod *pods_of(struct pods *pods,
					const struct container_identity *identity)
{
	return pods && identity->in_pod ? pods_find(pods, identity->pod_uid) : NULL;
}
/* The first pod for which @is returns true, or NULL. Valid until the handler returns to the loop.
 */
const struct pod *pods_search(const struct pods *pods, bool (*is)(const struct pod *pod));
/* Calls @each for every pod, which must not call other functions of this file. */
void pods_each(const struct pods *pods, void (*each)(void *userdata, const struct pod *pod),
	       void *userdata);
/* Shortens a pause before the next list or watch: a caller waits for news. */
void pods_hurry(struct pods *pods);
/* True: the watch is open. An unknown pod then does not exist, or is very new. */
bool pods_connected(const struct pods *pods);
