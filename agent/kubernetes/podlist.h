/* What the API server says of pods: JSON in, the few facts we need out. Pure. Everything here comes
 * from outside; what does not fit or does not make sense leaves out a pod, never more. */
#pragma once

#include "config/pod-names.h"
#include "kubernetes/container.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PODLIST_CONTAINERS_MAX 128

struct pod_container {
	char id[80]; /* as in struct container_identity */
	char name[64];
	uint32_t share; /* 1..100 of a GPU; 0: it asks for none */
};

struct pod {
	char uid[64];
	char cgroup_uid[64]; /* the UID in the cgroup path: another one for a static pod */
	char namespace_[64];
	char name[254];
	char priority_class[254]; /* empty: none */
	char priority[32];        /* value of our annotation, cut; empty: none */
	char latency_slo[32];     /* the same */
	char memory[32];          /* the same */
	char weight[32];          /* the same */
	uint32_t least_share;     /* the smallest that a container asks for; 0: none asks */
	enum container_qos qos;
	size_t n_containers;
	struct pod_container containers[];
};

void pod_free(struct pod *pod);
/* NULL: no such container (or not reported yet). */
const struct pod_container *pod_container(const struct pod *pod, const char *id);
bool pod_equal(const struct pod *a, const struct pod *b);

/* One page of a list. */
struct podlist {
	char resource_version[64];
	char *next; /* the token for the page after this one; NULL: this was the last */
	size_t n;
	size_t skipped; /* entries that were no pods */
	struct pod **pods;
};

/* At most @max pods. -EINVAL: not a list; -E2BIG: more than @max;
 * -ENOMEM. */
int podlist_parse(struct podlist *out, const char *text, size_t size, const struct pod_names *names,
		  size_t max);
void podlist_deinit(struct podlist *list);

enum podlist_event_type {
	PODLIST_EVENT_IGNORED, /* a pod that makes no sense, or a type we do not know */
	PODLIST_EVENT_CHANGED, /* new, or changed */
	PODLIST_EVENT_DELETED,
	PODLIST_EVENT_BOOKMARK,
	PODLIST_EVENT_ERROR,
};

/* One line of a watch. */
struct podlist_event {
	enum podlist_event_type type;
	char resource_version[64]; /* empty: none said */
	int code;                  /* of an error, as an HTTP status */
	char message[128];         /* of an error */
	struct pod *pod;           /* of a change or a deletion */
};

/* -EINVAL: not an event; -ENOMEM. */
int podlist_parse_event(struct podlist_event *out, const char *line, size_t size,
			const struct pod_names *names);
void podlist_event_deinit(struct podlist_event *event);
