/* What happens to pods and to the node, told as Kubernetes events (`kubectl describe`).
 *
 * The same thing told again is the same event with a higher count. Not more than EVENTS_BURST are
 * sent at once and one each EVENTS_INTERVAL_NS then, counts of one event each EVENTS_REPEAT_NS;
 * what does not fit into the table is counted and left out. Events that the API server does not
 * take are not worth more than a line in the log. */
#pragma once

#include <stdint.h>

#include "kubernetes/api.h"

#include "weir/loop.h"

#define EVENTS_MAX         256 /* told, or to be told */
#define EVENTS_BURST       20
#define EVENTS_INTERVAL_NS 2000000000ull
#define EVENTS_REPEAT_NS   30000000000ull
#define EVENTS_KEEP_NS     (600 * 1000000000ull) /* after that the same thing is a new event */

struct pod;
struct events;

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* @api and @node must live as long as the events. -ENOMEM and others. */
int events_new(struct events **out, struct loop *loop, struct api *api, const char *node);
/* NULL is fine, here and below: then nobody is told. */
void events_free(struct events *events);

/* @reason is one word in CamelCase that lives for ever; the message is cut at a kilobyte. */
void events_tell_pod(struct events *events, const struct pod *pod, enum event_type type,
		     const char *reason, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void events_tell_node(struct events *events, enum event_type type, const char *reason,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* That were left out. */
uint64_t events_dropped(const struct events *events);
