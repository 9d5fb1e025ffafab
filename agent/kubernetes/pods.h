/* The pods of this node as the API server knows them: listed once, then watched. What is known
 * stays known while the server is away, and is corrected by the list when it comes back. */
#pragma once

#include "kubernetes/podlist.h"

#include "weir/loop.h"

#define PODS_MAX           2048
#define PODS_LINE_MAX      (4u << 20)  /* one event of a watch */
#define PODS_PAGE_MAX      (64u << 20) /* one page of a list */
#define PODS_PAGE_ENTRIES  250
#define PODS_WATCH_SECONDS 290 /* the server ends a watch then, and a new one begins */

struct config_kubernetes;
struct pods;

/* Something is other than it was: a pod, or pods_connected(). Called from the loop, once for many
 * changes. */
typedef void pods_changed_fn(void *userdata);

/* Starts to list and watch; @config must live as long as the pods. -EINVAL and others: the
 * credentials in @config make no sense, said in the log. A server that is away is no error. */
int pods_new(struct pods **out, struct loop *loop, const struct config_kubernetes *config,
	     pods_changed_fn *changed, void *userdata);
void pods_free(struct pods *pods);

/* By the UID in the API, or by the one in a static pod's cgroup path. NULL: not known (yet). Valid
 * until the loop goes on. */
const struct pod *pods_find(struct pods *pods, const char *uid);
/* One of them for which @is says so; NULL: none. Valid until the loop goes on. */
const struct pod *pods_search(const struct pods *pods, bool (*is)(const struct pod *pod));
/* Somebody waits for news: a list or watch that was put off begins soon. */
void pods_hurry(struct pods *pods);
/* The watch stands: what is not known does not exist, or has just begun. */
bool pods_connected(const struct pods *pods);
