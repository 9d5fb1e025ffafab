/* Parses the API server's JSON about pods into the few facts that Weir needs. Pure. The input is
 * untrusted: a malformed entry drops one pod, never more. */
#pragma once

#include "config/pod-names.h"
#include "kubernetes/container.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PODLIST_CONTAINERS_MAX 128
#define POD_NOTE_MAX           32 /* of an annotation's value, with NUL */
#define POD_UNKNOWN_MAX        4  /* unknown annotations that are kept */
#define POD_CLAIMS_MAX         4  /* resource claims of a container that are kept */

/* The annotations that Weir reads. */
enum pod_note {
	NOTE_PRIORITY,
	NOTE_LATENCY_SLO,
	NOTE_MEMORY,
	NOTE_WEIGHT,
	NOTE_COMPUTE,
	NOTE_MEMORY_FULL,
	NOTE_YIELD,
	NOTE_MIN_RATE,
	POD_NOTES
};

enum pod_phase { POD_ALIVE, POD_SUCCEEDED, POD_FAILED };

/* The controller that created a pod, like a ReplicaSet. All empty: none. */
struct pod_owner {
	char api_version[64], kind[64], name[254], uid[64];
};

struct pod_container {
	char id[80]; /* as in struct container_identity */
	char name[64];
	uint32_t share; /* 1..100 of a GPU; 0: none */
	/* Names of the ResourceClaims that it uses, and what one of them gives it (pod-claims.h).
	 */
	char claims[POD_CLAIMS_MAX][254];
	uint64_t claimed; /* bytes of memory; 0: none */
};

/* One allocation: free() it. */
struct pod {
	char uid[64];
	char cgroup_uid[64]; /* the UID in the cgroup path; differs for a static pod */
	char namespace_[64];
	char name[254];
	char priority_class[254]; /* empty: none */
	/* Values of annotations; empty: none. A longer value is cut, ends in `...` and so is never
	 * valid. */
	char priority[POD_NOTE_MAX], latency_slo[POD_NOTE_MAX], memory[POD_NOTE_MAX],
		weight[POD_NOTE_MAX], compute_limit[POD_NOTE_MAX], memory_full[POD_NOTE_MAX],
		yield[POD_NOTE_MAX], min_rate[POD_NOTE_MAX];
	uint32_t empty_notes;      /* bits by enum pod_note: there, but with an empty value */
	uint32_t labels_like_note; /* bits: a label has the name of this annotation */
	/* Annotations in the domain of `weir.dev/priority` that Weir does not know. */
	char unknown[POD_UNKNOWN_MAX][80];
	uint32_t least_share; /* the smallest share of its containers; 0: none asks for a share */
	bool has_claims;      /* a container uses a ResourceClaim, of any driver */
	uint32_t request;     /* the largest request of a container, as written: 300 is 3 GPUs */
	enum container_qos qos;
	enum pod_phase phase;
	/* Of a pod that failed, or that the scheduler could not place; may be cut. */
	char status_reason[64], status_message[256];
	char node[254]; /* empty: none yet */
	struct pod_owner owner;
	size_t n_containers;
	struct pod_container containers[];
};

/* NULL: no such container, or not reported yet. */
const struct pod_container *pod_container(const struct pod *pod, const char *id);
/* The least memory that a container has by a resource claim; 0: none has. */
uint64_t pod_claimed(const struct pod *pod);
/* The name of an annotation in @names. */
const char *pod_note_name(const struct pod_names *names, enum pod_note note);
bool pod_equal(const struct pod *a, const struct pod *b);

/* One page of a list. */
struct podlist {
	char resource_version[64];
	char *next; /* token of the next page; NULL: this is the last */
	size_t n;
	size_t skipped; /* malformed entries */
	struct pod **pods;
};

/* At most @max pods. -EINVAL: not a list; -E2BIG: more than @max;
 * -ENOMEM. */
int podlist_parse(struct podlist *out, const char *text, size_t size, const struct pod_names *names,
		  size_t max);
void podlist_deinit(struct podlist *list);

enum podlist_event_type {
	PODLIST_EVENT_IGNORED, /* a malformed pod, or an unknown type */
	PODLIST_EVENT_CHANGED, /* new, or changed */
	PODLIST_EVENT_DELETED,
	PODLIST_EVENT_BOOKMARK,
	PODLIST_EVENT_ERROR,
};

/* One event: a line of a watch. */
struct podlist_event {
	enum podlist_event_type type;
	char resource_version[64]; /* empty: none */
	int code;                  /* of an error, as an HTTP status */
	char message[128];         /* of an error */
	struct pod *pod;           /* of a change or a deletion */
};

/* -EINVAL: not an event; -ENOMEM. */
int podlist_parse_event(struct podlist_event *out, const char *line, size_t size,
			const struct pod_names *names);
void podlist_event_deinit(struct podlist_event *event);
