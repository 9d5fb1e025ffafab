/* Who a process is, as the kernel says it: its cgroup path names its pod, its container and the
 * pod's QoS class, and no process of a container can write that part of the path. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum container_qos {
	CONTAINER_QOS_NONE, /* not in a pod, or not known */
	CONTAINER_QOS_BEST_EFFORT,
	CONTAINER_QOS_BURSTABLE,
	CONTAINER_QOS_GUARANTEED,
};

struct container_identity {
	pid_t pid;
	uid_t uid;             /* real user, in the agent's user namespace */
	char pod_uid[64];      /* of a static pod: the hash that the kubelet gave it */
	char container_id[80]; /* without the runtime's prefix; empty: none below the pod */
	char cgroup[512];      /* down to the container; cut where it is longer */
	enum container_qos qos;
	bool in_pod;
};

/* Reads it all from /proc. -ESRCH: no such process; -ENXIO: the process is of a PID namespace that
 * this one does not see (the agent needs hostPID). Not being in a pod is no error. */
int container_identify(struct container_identity *out, pid_t pid);

/* The same from the text of /proc/PID/cgroup; leaves pid and uid alone. -EINVAL: no line of @text
 * names a cgroup. */
int container_parse_cgroup(struct container_identity *out, const char *text);

/* BestEffort, Burstable, Guaranteed, or none. */
const char *container_qos_name(enum container_qos qos);
enum container_qos container_qos_parse(const char *name);
