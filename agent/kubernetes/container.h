/* The identity of a process by its cgroup path, which names its pod, its container and the pod's
 * QoS class. No process of a container can change that part of the path. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum container_qos {
	CONTAINER_QOS_NONE, /* not in a pod, or unknown */
	CONTAINER_QOS_BEST_EFFORT,
	CONTAINER_QOS_BURSTABLE,
	CONTAINER_QOS_GUARANTEED,
};

struct container_identity {
	pid_t pid;
	uid_t uid;             /* real user ID, in the agent's user namespace */
	char pod_uid[64];      /* for a static pod: the hash that the kubelet gave it */
	char container_id[80]; /* without the runtime's prefix; empty: no container */
	char cgroup[512];      /* down to the container; truncated if longer */
	enum container_qos qos;
	bool in_pod;
};

/* Reads the identity from /proc. -ESRCH: no such process; -ENXIO: the process is in a PID namespace
 * that the agent does not see (the agent needs hostPID). A process outside all pods is no error. */
int container_identify(struct container_identity *out, pid_t pid);

/* The same from the text of /proc/PID/cgroup, without pid and uid. -EINVAL: @text names no cgroup.
 */
int container_parse_cgroup(struct container_identity *out, const char *text);

/* "BestEffort", "Burstable", "Guaranteed" or "none". */
const char *container_qos_name(enum container_qos qos);
/* CONTAINER_QOS_NONE for NULL and for any other name. */
enum container_qos container_qos_parse(const char *name);
