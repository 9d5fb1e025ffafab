#include "kubernetes/events.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "kubernetes/podlist.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define COMPONENT   "weir-agent"
#define MESSAGE_MAX 1024
#define NAME_KEEP   200 /* bytes of an object's name that its event's name keeps */

/* An event about an object. */
struct event {
	UT_hash_handle hh; /* oldest first */
	char key[96 + MESSAGE_MAX];
	struct events *events;
	struct pod_owner object; /* a node has its name as UID, as in the kubelet's events */
	char namespace_[64], name[NAME_KEEP + 24];
	bool in_namespace; /* the object is */
	enum event_type type;
	const char *reason;
	char message[MESSAGE_MAX];
	time_t first, last;
	unsigned count;
	unsigned told;    /* the count that was last sent */
	uint64_t told_at; /* 0: never */
	uint64_t last_at;
	bool sending;
};

struct events {
	struct api *api;
	const char *node;
	struct event *all;
	struct loop_timer flush;
	bool flushing; /* the timer runs */
	unsigned tokens;
	uint64_t filled, dropped;
	uint64_t names; /* counter that makes names unique */
};

static void forget(struct events *events, struct event *event)
{
	HASH_DEL(events->all, event);
	free(event);
}

static void refill(struct events *events, uint64_t now)
{
	uint64_t more = (now - events->filled) / EVENTS_INTERVAL_NS;

	if (!more)
		return;
	events->filled += more * EVENTS_INTERVAL_NS;
	events->tokens = (unsigned)smaller(events->tokens + more, EVENTS_BURST);
}

static void format_time(time_t t, char out[32])
{
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* All that a repeated event changes. */
static void add_times(cJSON *object, const struct event *event)
{
	char text[32];

	format_time(event->last, text);
	cJSON_AddStringToObject(object, "lastTimestamp", text);
	cJSON_AddNumberToObject(object, "count", event->count);
}

static void add_object(cJSON *root, const struct event *event)
{
	cJSON *object = cJSON_AddObjectToObject(root, "involvedObject");

	cJSON_AddStringToObject(object, "apiVersion", event->object.api_version);
	cJSON_AddStringToObject(object, "kind", event->object.kind);
	if (event->in_namespace)
		cJSON_AddStringToObject(object, "namespace", event->namespace_);
	cJSON_AddStringToObject(object, "name", event->object.name);
	cJSON_AddStringToObject(object, "uid", event->object.uid);
}

static cJSON *describe(const struct events *events, const struct event *event)
{
	cJSON *root = cJSON_CreateObject(), *part;
	char text[32];

	cJSON_AddStringToObject(root, "apiVersion", "v1");
	cJSON_AddStringToObject(root, "kind", "Event");
	part = cJSON_AddObjectToObject(root, "metadata");
	cJSON_AddStringToObject(part, "name", event->name);
	cJSON_AddStringToObject(part, "namespace", event->namespace_);
	add_object(root, event);
	cJSON_AddStringToObject(root, "type", event->type == EVENT_WARNING ? "Warning" : "Normal");
	cJSON_AddStringToObject(root, "reason", event->reason);
	cJSON_AddStringToObject(root, "message", event->message);
	part = cJSON_AddObjectToObject(root, "source");
	cJSON_AddStringToObject(part, "component", COMPONENT);
	cJSON_AddStringToObject(part, "host", events->node);
	cJSON_AddStringToObject(root, "reportingComponent", COMPONENT);
	cJSON_AddStringToObject(root, "reportingInstance", events->node);
	format_time(event->first, text);
	cJSON_AddStringToObject(root, "firstTimestamp", text);
	return root;
}

static void sent(void *userdata, long status)
{
	struct event *event = userdata;

	event->sending = false;
	/* The server refused it, as in a namespace that is being deleted. The next event of this
	 * kind is a new one. */
	if (status < 200 || status >= 300)
		forget(event->events, event);
}

static bool send_event(struct events *events, struct event *event, uint64_t now)
{
	bool fresh = !event->told_at;
	cJSON *body = fresh ? describe(events, event) : cJSON_CreateObject();
	char path[512];

	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events%s%s", event->namespace_,
		 fresh ? "" : "/", fresh ? "" : event->name);
	add_times(body, event);
	if (api_send(events->api, fresh ? "POST" : "PATCH", path, body, sent, event) < 0)
		return false;
	event->sending = true;
	event->told = event->count;
	event->told_at = now;
	return true;
}

static bool is_due(const struct event *event, uint64_t now)
{
	return !event->sending && event->told != event->count &&
	       (!event->told_at || now - event->told_at >= EVENTS_REPEAT_NS);
}

static void flush(struct loop_timer *timer)
{
	struct events *events = container_of(timer, struct events, flush);
	uint64_t now = loop_now();
	struct event *event, *next;
	bool left = false;

	refill(events, now);
	HASH_ITER (hh, events->all, event, next) {
		if (is_due(event, now) && events->tokens && send_event(events, event, now))
			events->tokens--;
		left |= event->told != event->count;
		if (!event->sending && event->told == event->count &&
		    now - event->last_at > EVENTS_KEEP_NS)
			forget(events, event);
	}
	events->flushing = left;
	if (left)
		loop_timer_set(&events->flush, 1000000000, 0);
}

/* Drops the oldest event that was sent. */
static bool make_room(struct events *events)
{
	if (HASH_COUNT(events->all) < EVENTS_MAX)
		return true;
	for (struct event *event = events->all; event; event = event->hh.next) {
		if (event->sending || event->told != event->count)
			continue;
		forget(events, event);
		return true;
	}
	if (events->dropped++ == 0)
		log_warning("more than %d events are waiting; others are dropped", EVENTS_MAX);
	return false;
}

/* How many bytes of @object the event's name keeps: each part of a name must end with a letter or
 * digit.
 */
static int name_size(const char *object)
{
	size_t n = strnlen(object, NAME_KEEP);

	while (n > 0 && !isalnum((unsigned char)object[n - 1]))
		n--;
	return (int)n;
}

static struct event *add(struct events *events, const char *key, const struct event *as)
{
	struct event *event = make_room(events) ? malloc(sizeof(*event)) : NULL;

	if (!event)
		return NULL;
	*event = *as;
	event->events = events;
	snprintf(event->key, sizeof(event->key), "%s", key);
	snprintf(event->name, sizeof(event->name), "%.*s.%016llx", name_size(event->object.name),
		 event->object.name, (unsigned long long)(events->names++));
	event->first = time(NULL);
	HASH_ADD_STR(events->all, key, event);
	return event;
}

/* @as: its type, reason and object. */
static void tell(struct events *events, struct event *as, const char *format, va_list args)
{
	char key[sizeof(as->key)];
	struct event *event;

	vsnprintf(as->message, sizeof(as->message), format, args);
	snprintf(key, sizeof(key), "%s %s %s", as->object.uid, as->reason, as->message);
	HASH_FIND_STR(events->all, key, event);
	if (!event)
		event = add(events, key, as);
	if (!event)
		return;
	event->count++;
	event->last = time(NULL);
	event->last_at = loop_now();
	if (!events->flushing)
		loop_timer_set(&events->flush, 0, 0);
	events->flushing = true;
}

static void set_namespace(struct event *event, const struct pod *pod)
{
	event->in_namespace = pod != NULL;
	snprintf(event->namespace_, sizeof(event->namespace_), "%s",
		 pod ? pod->namespace_ : "default");
}

void events_tell(struct events *events, const struct pod *pod, enum event_type type,
		 const char *reason, const char *format, ...)
{
	struct event fresh = {
		.type = type, .reason = reason, .object = {.api_version = "v1", .kind = "Node"}};
	va_list args;

	if (!events)
		return;
	if (pod)
		strcpy(fresh.object.kind, "Pod");
	snprintf(fresh.object.uid, sizeof(fresh.object.uid), "%s", pod ? pod->uid : events->node);
	snprintf(fresh.object.name, sizeof(fresh.object.name), "%s",
		 pod ? pod->name : events->node);
	set_namespace(&fresh, pod);
	va_start(args, format);
	tell(events, &fresh, format, args);
	va_end(args);
}

void events_tell_owner(struct events *events, const struct pod *pod, enum event_type type,
		       const char *reason, const char *format, ...)
{
	struct event fresh = {.type = type, .reason = reason, .object = pod->owner};
	va_list args;

	if (!events || !*pod->owner.uid)
		return;
	set_namespace(&fresh, pod);
	va_start(args, format);
	tell(events, &fresh, format, args);
	va_end(args);
}

uint64_t events_dropped(const struct events *events)
{
	return events ? events->dropped : 0;
}

int events_new(struct events **out, struct loop *loop, struct api *api, const char *node)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return error_origin(-ENOMEM);
	*events = (struct events){
		.api = api,
		.node = node,
		.tokens = EVENTS_BURST,
		.filled = loop_now(),
		.names = clock_ns(CLOCK_REALTIME),
	};
	int r = loop_timer_init(&events->flush, loop, flush);
	if (r < 0)
		free(take(events));
	*out = events;
	return r;
}

void events_free(struct events *events)
{
	if (!events)
		return;
	hash_release(events->all, free);
	loop_timer_deinit(&events->flush);
	free(events);
}
