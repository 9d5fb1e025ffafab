/* A container's cgroup path, as kubelet and container runtime build it:
 *
 *   cgroupfs driver  PREFIX/kubepods[/burstable|/besteffort]/podUID/ID[/nested]
 *   systemd driver   PREFIX/kubepods.slice[/kubepods-QOS.slice]/kubepods[-QOS]-podUID.slice/
 *                    RUNTIME-ID.scope[/nested]           ('-' of the UID is written '_')
 *   mixture          PREFIX/kubepods[-QOS]-podUID.slice:cri-containerd:ID
 *
 * A path without QoS means Guaranteed. PREFIX is a cgroup root (kind, k3s, --cgroup-root) or, seen
 * from another cgroup namespace, a sequence of `..`. With a cgroup root, systemd writes it into
 * each name (`kubelet-kubepods-burstable-podUID.slice`).
 *
 * Only the first pod in a path counts. The kubelet names what is above a container; the container
 * itself may name what is below. */
#include "kubernetes/container.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PROC_TEXT_MAX 16384

/* A part of a path, not terminated by NUL. */
struct span {
	const char *at;
	size_t n;
};

static const struct {
	enum container_qos qos;
	const char *name;
	const char *folder; /* with the cgroupfs driver */
	const char *infix;  /* with the systemd driver: between `kubepods` and `-pod` */
} classes[] = {
	{CONTAINER_QOS_BURSTABLE, "Burstable", "burstable", "-burstable"},
	{CONTAINER_QOS_BEST_EFFORT, "BestEffort", "besteffort", "-besteffort"},
	{CONTAINER_QOS_GUARANTEED, "Guaranteed", NULL, ""},
};

static bool span_is(struct span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

static bool span_skip(struct span *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->n < n || memcmp(s->at, prefix, n) != 0)
		return false;
	s->at += n;
	s->n -= n;
	return true;
}

static bool span_drop(struct span *s, const char *suffix)
{
	size_t n = strlen(suffix);

	if (s->n < n || memcmp(s->at + s->n - n, suffix, n) != 0)
		return false;
	s->n -= n;
	return true;
}

/* Removes the first component from @path and returns it; empty at the end. */
static struct span next_component(struct span *path)
{
	while (path->n && *path->at == '/') {
		path->at++;
		path->n--;
	}
	const char *end = memchr(path->at, '/', path->n);
	struct span component = {path->at, end ? (size_t)(end - path->at) : path->n};
	path->at += component.n;
	path->n -= component.n;
	return component;
}

/* False: not a UID; @out is unchanged. */
static bool copy_uid(char out[64], struct span uid)
{
	if (uid.n == 0 || uid.n >= 64)
		return false;
	for (size_t i = 0; i < uid.n; i++)
		if (!isalnum((unsigned char)uid.at[i]) && uid.at[i] != '-' && uid.at[i] != '_')
			return false;
	for (size_t i = 0; i < uid.n; i++)
		out[i] = uid.at[i] == '_' ? '-' : uid.at[i];
	out[uid.n] = '\0';
	return true;
}

/* `ID` or `RUNTIME-ID`, perhaps with `.scope`. All CRI runtimes use hex digits for an ID.
 * crio-conmon-ID is a process of the runtime, not of the container. */
static bool copy_container_id(char out[80], struct span component)
{
	span_drop(&component, ".scope");
	if (span_skip(&component, "crio-conmon-"))
		return false;
	const char *dash = memrchr(component.at, '-', component.n);
	if (dash) {
		component.n -= (size_t)(dash + 1 - component.at);
		component.at = dash + 1;
	}
	if (component.n < 12 || component.n >= 80)
		return false;
	for (size_t i = 0; i < component.n; i++)
		if (!isxdigit((unsigned char)component.at[i]))
			return false;
	memcpy(out, component.at, component.n);
	out[component.n] = '\0';
	return true;
}

/* Parses the systemd driver's name of a pod's slice. @rest: the part of the component behind
 * `.slice`.
 */
static bool parse_slice(struct container_identity *out, struct span component, struct span *rest)
{
	const char *slice = memmem(component.at, component.n, ".slice", strlen(".slice"));
	const char *pods = memmem(component.at, component.n, "kubepods", strlen("kubepods"));

	if (!slice || !pods || pods > slice || (pods > component.at && pods[-1] != '-'))
		return false;
	pods += strlen("kubepods");
	for (size_t i = 0; i < countof(classes); i++) {
		struct span uid = {pods, (size_t)(slice - pods)};
		if (!span_skip(&uid, classes[i].infix) || !span_skip(&uid, "-pod") ||
		    !copy_uid(out->pod_uid, uid))
			continue;
		out->qos = classes[i].qos;
		rest->at = slice + strlen(".slice");
		rest->n = (size_t)(component.at + component.n - rest->at);
		return true;
	}
	return false;
}

/* Parses the cgroupfs driver's folders behind `kubepods` and removes them from @path. */
static bool parse_folders(struct container_identity *out, struct span *path)
{
	struct span tail = *path;
	struct span component = next_component(&tail);
	enum container_qos qos = CONTAINER_QOS_GUARANTEED;

	for (size_t i = 0; i < countof(classes); i++) {
		if (classes[i].folder && span_is(component, classes[i].folder)) {
			qos = classes[i].qos;
			component = next_component(&tail);
			break;
		}
	}
	if (!span_skip(&component, "pod") || !copy_uid(out->pod_uid, component))
		return false;
	out->qos = qos;
	*path = tail;
	return true;
}

/* `:cri-containerd:ID` behind a slice's name in the same component. */
static bool parse_colons(struct container_identity *out, struct span rest)
{
	const char *colon = memrchr(rest.at, ':', rest.n);

	if (!colon)
		return false;
	struct span id = {colon + 1, (size_t)(rest.at + rest.n - colon - 1)};
	return copy_container_id(out->container_id, id);
}

static void copy_cgroup(struct container_identity *out, const char *path, size_t n)
{
	snprintf(out->cgroup, sizeof(out->cgroup), "%.*s", (int)n, path);
}

/* True: @path is in a pod, which @out describes. */
static bool parse_path(struct container_identity *out, struct span path)
{
	struct span left = path;
	struct span component = next_component(&left);

	while (span_is(component, ".."))
		component = next_component(&left);
	/* Users may name cgroups of their sessions like pods. */
	if (span_is(component, "user.slice"))
		return false;
	for (; component.n; component = next_component(&left)) {
		struct span rest = {0};
		if (span_is(component, "kubepods") ? !parse_folders(out, &left)
						   : !parse_slice(out, component, &rest))
			continue;
		out->in_pod = true;
		if (rest.n) {
			parse_colons(out, rest);
		} else {
			struct span below = left;
			if (copy_container_id(out->container_id, next_component(&below)))
				left = below;
		}
		copy_cgroup(out, path.at, (size_t)(left.at - path.at));
		return true;
	}
	return false;
}

/* A line of /proc/PID/cgroup is `HIERARCHY:CONTROLLERS:PATH`. */
static bool line_path(struct span *out, struct span line)
{
	for (int colons = 0; colons < 2; colons++) {
		const char *colon = memchr(line.at, ':', line.n);
		if (!colon)
			return false;
		line.n -= (size_t)(colon + 1 - line.at);
		line.at = colon + 1;
	}
	if (line.n == 0 || *line.at != '/')
		return false;
	*out = line;
	return true;
}

/* cgroup v1 has a line for each hierarchy, but not every hierarchy has pods. Use the line with the
 * most information. */
int container_parse_cgroup(struct container_identity *out, const char *text)
{
	struct container_identity best = {0};
	struct span longest = {0};

	while (*text) {
		struct container_identity found = {0};
		size_t n = strcspn(text, "\n");
		struct span path;
		if (line_path(&path, (struct span){text, n})) {
			if (path.n > longest.n)
				longest = path;
			if (parse_path(&found, path) &&
			    (!best.in_pod || (found.container_id[0] && !best.container_id[0])))
				best = found;
		}
		text += n + (text[n] == '\n');
	}
	if (!longest.n)
		return -EINVAL;
	if (!best.in_pod)
		copy_cgroup(&best, longest.at, longest.n);
	best.pid = out->pid;
	best.uid = out->uid;
	*out = best;
	return 0;
}

int container_identify(struct container_identity *out, pid_t pid)
{
	struct container_identity found = {.pid = pid};
	char path[32], text[PROC_TEXT_MAX];

	if (pid <= 0)
		return -ENXIO;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	/* The descriptor stays with this process even if the kernel reuses its pid. */
	cleanup(closep) int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return errno == ENOENT ? -ESRCH : error_origin(-errno);

	/* Not the owner of /proc/PID, which is root for a process that is not dumpable. */
	ssize_t n = file_read(folder, "status", text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	const char *uid = strstr(text, "\nUid:");
	if (!uid)
		return error_origin(-EINVAL);
	found.uid = (uid_t)strtoul(uid + strlen("\nUid:"), NULL, 10);

	n = file_read(folder, "cgroup", text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	int r = container_parse_cgroup(&found, text);
	if (r == 0)
		*out = found;
	return r;
}

const char *container_qos_name(enum container_qos qos)
{
	for (size_t i = 0; i < countof(classes); i++)
		if (classes[i].qos == qos)
			return classes[i].name;
	return "none";
}

enum container_qos container_qos_parse(const char *name)
{
	for (size_t i = 0; name && i < countof(classes); i++)
		if (strcmp(classes[i].name, name) == 0)
			return classes[i].qos;
	return CONTAINER_QOS_NONE;
}
