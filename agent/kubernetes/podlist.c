#include "kubernetes/podlist.h"

#include "weir/base.h"
#include "weir/error.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_HASH   "kubernetes.io/config.hash"
#define CONFIG_MIRROR "kubernetes.io/config.mirror"

static void json_deletep(cJSON **json)
{
	cJSON_Delete(*json);
}

/* The string member @name of @object, or NULL. */
static const char *member_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Copies the member @name. False: missing, empty or too long. */
static bool copy_member(char *out, size_t size, const cJSON *object, const char *name)
{
	const char *text = member_text(object, name);

	if (!text || !*text || strlen(text) >= size)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

/* `containerd://ID` -> ID. */
static bool copy_container(struct pod_container *out, const cJSON *status)
{
	const char *id = member_text(status, "containerID");
	const char *scheme = id ? strstr(id, "://") : NULL;

	if (!scheme)
		return false;
	id = scheme + strlen("://");
	if (!*id || strlen(id) >= sizeof(out->id) ||
	    !copy_member(out->name, sizeof(out->name), status, "name"))
		return false;
	memcpy(out->id, id, strlen(id) + 1);
	return true;
}

static const char *const status_lists[] = {
	"containerStatuses",
	"initContainerStatuses",
	"ephemeralContainerStatuses",
};

static size_t count_containers(const cJSON *status)
{
	size_t n = 0;

	for (size_t i = 0; i < countof(status_lists); i++)
		n += (size_t)cJSON_GetArraySize(
			cJSON_GetObjectItemCaseSensitive(status, status_lists[i]));
	return n < PODLIST_CONTAINERS_MAX ? n : PODLIST_CONTAINERS_MAX;
}

static void copy_containers(struct pod *pod, const cJSON *status, size_t room)
{
	for (size_t i = 0; i < countof(status_lists); i++) {
		const cJSON *list = cJSON_GetObjectItemCaseSensitive(status, status_lists[i]);
		const cJSON *entry;
		cJSON_ArrayForEach(entry, list)
		{
			if (pod->n_containers == room)
				return;
			if (copy_container(&pod->containers[pod->n_containers], entry))
				pod->n_containers++;
		}
	}
}

/* The mirror pod of a static pod has the kubelet's hash in two annotations. Users can write the
 * first into any pod, but the kubelet deletes pods that only claim to be mirrors. */
static void copy_cgroup_uid(struct pod *pod, const cJSON *notes)
{
	const char *mirror = member_text(notes, CONFIG_MIRROR);

	if (!mirror || !copy_member(pod->cgroup_uid, sizeof(pod->cgroup_uid), notes, CONFIG_HASH) ||
	    strcmp(pod->cgroup_uid, mirror) != 0)
		memcpy(pod->cgroup_uid, pod->uid, sizeof(pod->uid));
}

const char *pod_note_name(const struct pod_names *names, enum pod_note note)
{
	const char *const list[POD_NOTES] = {
		[NOTE_PRIORITY] = names->priority, [NOTE_LATENCY_SLO] = names->latency_slo,
		[NOTE_MEMORY] = names->memory,     [NOTE_WEIGHT] = names->weight,
		[NOTE_COMPUTE] = names->compute,   [NOTE_MEMORY_FULL] = names->memory_full,
		[NOTE_YIELD] = names->yield,       [NOTE_MIN_RATE] = names->min_rate,
	};

	return list[note];
}

static void copy_notes(struct pod *pod, const cJSON *notes, const cJSON *labels,
		       const struct pod_names *names)
{
	char *const values[POD_NOTES] = {
		[NOTE_PRIORITY] = pod->priority,     [NOTE_LATENCY_SLO] = pod->latency_slo,
		[NOTE_MEMORY] = pod->memory,         [NOTE_WEIGHT] = pod->weight,
		[NOTE_COMPUTE] = pod->compute_limit, [NOTE_MEMORY_FULL] = pod->memory_full,
		[NOTE_YIELD] = pod->yield,           [NOTE_MIN_RATE] = pod->min_rate,
	};

	for (enum pod_note note = 0; note < POD_NOTES; note++) {
		const char *name = pod_note_name(names, note), *text = member_text(notes, name);
		if (text && strlen(text) >= POD_NOTE_MAX)
			snprintf(values[note], POD_NOTE_MAX, "%.*s...", POD_NOTE_MAX - 4, text);
		else if (text)
			snprintf(values[note], POD_NOTE_MAX, "%s", text);
		if (text && !*text)
			pod->empty_notes |= 1u << note;
		if (member_text(labels, name))
			pod->labels_like_note |= 1u << note;
	}
}

static bool is_note(const char *name, const struct pod_names *names)
{
	for (enum pod_note note = 0; note < POD_NOTES; note++)
		if (strcmp(name, pod_note_name(names, note)) == 0)
			return true;
	return false;
}

/* A misspelt name is in the same domain. */
static void copy_unknown(struct pod *pod, const cJSON *notes, const struct pod_names *names)
{
	const char *slash = strchr(names->priority, '/');
	size_t n = slash ? (size_t)(slash - names->priority) + 1 : 0, kept = 0;
	const cJSON *note;

	if (!n)
		return;
	cJSON_ArrayForEach(note, notes)
	{
		if (kept < POD_UNKNOWN_MAX && strncmp(note->string, names->priority, n) == 0 &&
		    !is_note(note->string, names))
			snprintf(pod->unknown[kept++], sizeof(pod->unknown[0]), "%s", note->string);
	}
}

static void copy_owner(struct pod_owner *out, const cJSON *meta)
{
	const cJSON *owner;

	cJSON_ArrayForEach(owner, cJSON_GetObjectItemCaseSensitive(meta, "ownerReferences"))
	{
		if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(owner, "controller")))
			continue;
		if (!copy_member(out->api_version, sizeof(out->api_version), owner, "apiVersion") ||
		    !copy_member(out->kind, sizeof(out->kind), owner, "kind") ||
		    !copy_member(out->name, sizeof(out->name), owner, "name") ||
		    !copy_member(out->uid, sizeof(out->uid), owner, "uid"))
			*out = (struct pod_owner){0};
		return;
	}
}

static void copy_text(char *out, size_t size, const cJSON *object, const char *name)
{
	const char *text = member_text(object, name);

	snprintf(out, size, "%s", text ? text : "");
}

/* Why the scheduler could not place it. */
static void copy_pending(struct pod *pod, const cJSON *status)
{
	const cJSON *condition;

	cJSON_ArrayForEach(condition, cJSON_GetObjectItemCaseSensitive(status, "conditions"))
	{
		const char *type = member_text(condition, "type");
		const char *value = member_text(condition, "status");
		if (!type || strcmp(type, "PodScheduled") != 0 || !value ||
		    strcmp(value, "False") != 0)
			continue;
		copy_text(pod->status_reason, sizeof(pod->status_reason), condition, "reason");
		copy_text(pod->status_message, sizeof(pod->status_message), condition, "message");
	}
}

static void copy_status(struct pod *pod, const cJSON *status)
{
	const char *phase = member_text(status, "phase");

	pod->qos = container_qos_parse(member_text(status, "qosClass"));
	if (phase && strcmp(phase, "Succeeded") == 0)
		pod->phase = POD_SUCCEEDED;
	if (!phase || strcmp(phase, "Failed") != 0) {
		copy_pending(pod, status);
		return;
	}
	pod->phase = POD_FAILED;
	copy_text(pod->status_reason, sizeof(pod->status_reason), status, "reason");
	copy_text(pod->status_message, sizeof(pod->status_message), status, "message");
}

/* What a container asks for. The API server writes 1000 as `1k`. 0: nothing, or malformed. */
static uint32_t container_request(const cJSON *container, const char *resource)
{
	const cJSON *resources = cJSON_GetObjectItemCaseSensitive(container, "resources");
	const cJSON *limits = cJSON_GetObjectItemCaseSensitive(resources, "limits");
	const char *text = member_text(limits, resource);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return 0;
	unsigned long request = strtoul(text, &end, 10);
	if (*end == 'k' && !end[1] && request <= UINT32_MAX / 1000)
		return (uint32_t)request * 1000;
	if (request && *end && strchr("kMGTPE", *end) && !end[1])
		return UINT32_MAX;
	return *end ? 0 : (uint32_t)smaller(request, UINT32_MAX);
}

static void copy_share(struct pod *pod, const char *container, uint32_t request)
{
	/* Whole GPUs count as 100. */
	uint32_t share = request < 100 ? request : 100;

	if (request > pod->request)
		pod->request = request;
	for (size_t i = 0; container && i < pod->n_containers; i++)
		if (strcmp(pod->containers[i].name, container) == 0)
			pod->containers[i].share = share;
	if (share && (!pod->least_share || share < pod->least_share))
		pod->least_share = share;
}

static void copy_shares(struct pod *pod, const cJSON *spec, const char *resource)
{
	static const char *const lists[] = {"containers", "initContainers"};
	const cJSON *container;

	for (size_t list = 0; list < countof(lists); list++) {
		cJSON_ArrayForEach(container, cJSON_GetObjectItemCaseSensitive(spec, lists[list]))
		{
			copy_share(pod, member_text(container, "name"),
				   container_request(container, resource));
		}
	}
}

/* The name of the ResourceClaim behind a name in the pod's spec. A template's claim has a generated
 * name, which is in the status. NULL: not known yet. */
static const char *claim_name(const cJSON *spec, const cJSON *status, const char *name)
{
	const cJSON *lists[] = {
		cJSON_GetObjectItemCaseSensitive(spec, "resourceClaims"),
		cJSON_GetObjectItemCaseSensitive(status, "resourceClaimStatuses"),
	};
	const cJSON *item;

	for (size_t list = 0; list < countof(lists); list++) {
		cJSON_ArrayForEach(item, lists[list])
		{
			const char *here = member_text(item, "name");
			const char *claim = member_text(item, "resourceClaimName");
			if (here && claim && strcmp(here, name) == 0)
				return claim;
		}
	}
	return NULL;
}

static void copy_container_claims(struct pod_container *out, const cJSON *container,
				  const cJSON *spec, const cJSON *status)
{
	const cJSON *resources = cJSON_GetObjectItemCaseSensitive(container, "resources");
	const cJSON *item;
	size_t n = 0;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(resources, "claims"))
	{
		const char *name = member_text(item, "name");
		const char *claim = name ? claim_name(spec, status, name) : NULL;
		if (claim && n < POD_CLAIMS_MAX && strlen(claim) < sizeof(out->claims[0]))
			memcpy(out->claims[n++], claim, strlen(claim) + 1);
	}
}

static void copy_claims(struct pod *pod, const cJSON *spec, const cJSON *status)
{
	static const char *const lists[] = {"containers", "initContainers"};
	const cJSON *container;

	for (size_t list = 0; list < countof(lists); list++) {
		cJSON_ArrayForEach(container, cJSON_GetObjectItemCaseSensitive(spec, lists[list]))
		{
			const char *name = member_text(container, "name");
			const cJSON *resources =
				cJSON_GetObjectItemCaseSensitive(container, "resources");
			pod->has_claims |=
				cJSON_GetObjectItemCaseSensitive(resources, "claims") != NULL;
			for (size_t i = 0; name && i < pod->n_containers; i++)
				if (strcmp(pod->containers[i].name, name) == 0)
					copy_container_claims(&pod->containers[i], container, spec,
							      status);
		}
	}
}

/* 0 and the pod, or NULL if @object is malformed. */
static int parse_pod(struct pod **out, const cJSON *object, const struct pod_names *names)
{
	const cJSON *meta = cJSON_GetObjectItemCaseSensitive(object, "metadata");
	const cJSON *notes = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
	const cJSON *spec = cJSON_GetObjectItemCaseSensitive(object, "spec");
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");
	size_t room = count_containers(status);
	struct pod *pod = calloc(1, sizeof(*pod) + room * sizeof(pod->containers[0]));

	if (!pod)
		return error_origin(-ENOMEM);
	if (!copy_member(pod->uid, sizeof(pod->uid), meta, "uid") ||
	    !copy_member(pod->namespace_, sizeof(pod->namespace_), meta, "namespace") ||
	    !copy_member(pod->name, sizeof(pod->name), meta, "name")) {
		free(pod);
		*out = NULL;
		return 0;
	}
	copy_cgroup_uid(pod, notes);
	copy_member(pod->node, sizeof(pod->node), spec, "nodeName");
	copy_member(pod->priority_class, sizeof(pod->priority_class), spec, "priorityClassName");
	copy_notes(pod, notes, cJSON_GetObjectItemCaseSensitive(meta, "labels"), names);
	copy_unknown(pod, notes, names);
	copy_owner(&pod->owner, meta);
	copy_status(pod, status);
	copy_containers(pod, status, room);
	copy_shares(pod, spec, names->share);
	copy_claims(pod, spec, status);
	*out = pod;
	return 0;
}

const struct pod_container *pod_container(const struct pod *pod, const char *id)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		if (strcmp(pod->containers[i].id, id) == 0)
			return &pod->containers[i];
	return NULL;
}

uint64_t pod_claimed(const struct pod *pod)
{
	uint64_t least = 0;

	for (size_t i = 0; i < pod->n_containers; i++) {
		uint64_t claimed = pod->containers[i].claimed;
		if (claimed && (!least || claimed < least))
			least = claimed;
	}
	return least;
}

/* Both structs were zeroed before they were filled, so their bytes can be compared. */
bool pod_equal(const struct pod *a, const struct pod *b)
{
	return a->n_containers == b->n_containers &&
	       memcmp(a, b, sizeof(*a) + a->n_containers * sizeof(a->containers[0])) == 0;
}

static int parse_items(struct podlist *list, const cJSON *items, const struct pod_names *names)
{
	const cJSON *item;

	list->pods = calloc((size_t)cJSON_GetArraySize(items) + 1, sizeof(struct pod *));
	if (!list->pods)
		return error_origin(-ENOMEM);
	cJSON_ArrayForEach(item, items)
	{
		int r = parse_pod(&list->pods[list->n], item, names);
		if (r < 0)
			return r;
		if (list->pods[list->n])
			list->n++;
		else
			list->skipped++;
	}
	return 0;
}

int podlist_parse(struct podlist *out, const char *text, size_t size, const struct pod_names *names,
		  size_t max)
{
	cleanup(json_deletep) cJSON *json = cJSON_ParseWithLength(text, size);
	const cJSON *meta = cJSON_GetObjectItemCaseSensitive(json, "metadata");
	const cJSON *items = cJSON_GetObjectItemCaseSensitive(json, "items");
	const char *next = member_text(meta, "continue");

	*out = (struct podlist){0};
	/* A Go server writes an empty list as null. */
	if (!(cJSON_IsArray(items) || cJSON_IsNull(items)) ||
	    !copy_member(out->resource_version, sizeof(out->resource_version), meta,
			 "resourceVersion"))
		return -EINVAL;
	if ((size_t)cJSON_GetArraySize(items) > max)
		return -E2BIG;
	int r = parse_items(out, items, names);
	if (r == 0 && next && *next) {
		out->next = strdup(next);
		if (!out->next)
			r = error_origin(-ENOMEM);
	}
	if (r < 0)
		podlist_deinit(out);
	return r;
}

void podlist_deinit(struct podlist *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->pods[i]);
	free(list->pods);
	free(list->next);
	*list = (struct podlist){0};
}

static const struct {
	const char *name;
	enum podlist_event_type type;
} event_types[] = {
	{"ADDED", PODLIST_EVENT_CHANGED},   {"MODIFIED", PODLIST_EVENT_CHANGED},
	{"DELETED", PODLIST_EVENT_DELETED}, {"BOOKMARK", PODLIST_EVENT_BOOKMARK},
	{"ERROR", PODLIST_EVENT_ERROR},
};

static enum podlist_event_type event_type(const char *name)
{
	for (size_t i = 0; i < countof(event_types); i++)
		if (strcmp(event_types[i].name, name) == 0)
			return event_types[i].type;
	return PODLIST_EVENT_IGNORED;
}

int podlist_parse_event(struct podlist_event *out, const char *line, size_t size,
			const struct pod_names *names)
{
	cleanup(json_deletep) cJSON *json = cJSON_ParseWithLength(line, size);
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(json, "object");
	const char *type = member_text(json, "type");

	*out = (struct podlist_event){0};
	if (!type || !cJSON_IsObject(object))
		return -EINVAL;
	out->type = event_type(type);
	if (out->type == PODLIST_EVENT_ERROR) {
		const cJSON *code = cJSON_GetObjectItemCaseSensitive(object, "code");
		const char *message = member_text(object, "message");
		out->code = cJSON_IsNumber(code) ? code->valueint : 0;
		snprintf(out->message, sizeof(out->message), "%s", message ? message : "");
		return 0;
	}
	copy_member(out->resource_version, sizeof(out->resource_version),
		    cJSON_GetObjectItemCaseSensitive(object, "metadata"), "resourceVersion");
	if (out->type != PODLIST_EVENT_CHANGED && out->type != PODLIST_EVENT_DELETED)
		return 0;
	int r = parse_pod(&out->pod, object, names);
	if (r == 0 && !out->pod)
		out->type = PODLIST_EVENT_IGNORED;
	return r;
}

void podlist_event_deinit(struct podlist_event *event)
{
	free(take(event->pod));
}
