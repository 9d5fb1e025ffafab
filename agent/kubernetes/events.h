/* Kubernetes events about pods, their controllers and the node (`kubectl describe` shows them).
 *
 * A repeated event is the same event with a higher count. Rates: at most EVENTS_BURST events at
 * once, then one per EVENTS_INTERVAL_NS; the count of one event is sent once per EVENTS_REPEAT_NS.
 * Events beyond EVENTS_MAX are dropped and counted. If the API server refuses an event, only the
 * log says so. */
#pragma once

#include <stdint.h>

#include "kubernetes/api.h"

#include "weir/loop.h"

#define EVENTS_MAX         256 /* sent or waiting */
#define EVENTS_BURST       20
#define EVENTS_INTERVAL_NS 2000000000ull
#define EVENTS_REPEAT_NS   30000000000ull
#define EVENTS_KEEP_NS     (600 * 1000000000ull) /* then the same event is a new one */

struct pod;
struct events;

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* @api and @node must live as long as the events. -ENOMEM and others. */
int events_new(struct events **out, struct loop *loop, struct api *api, const char *node);
/* All functions accept NULL and then do nothing. */
void events_free(struct events *events);

/* About @pod; NULL: about the node. @reason: a constant in CamelCase. The message is cut at 1 KiB.
 */
void events_tell(struct events *events, const struct pod *pod, enum event_type type,
		 const char *reason, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same about the controller of @pod, like a ReplicaSet; nothing if the pod has none. */
void events_tell_owner(struct events *events, const struct pod *pod, enum event_type type,
		       const char *reason, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The number of dropped events. */
uint64_t events_dropped(const struct events *events);
