/* Many clients of the agent in many pods, as far as the agent can tell: processes in cgroups named
 * as the kubelet names them connect, and the one process that measures speaks for all. No GPU work
 * is done. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <weir/protocol.h>

#define HERD_PODS    256u
#define HERD_CLIENTS 1024u

struct herd_client {
	unsigned pod, gpu, level;
	int socket;
	struct weir_control_page *control;
	struct weir_status_page *status;
};

struct herd {
	const char *root; /* a cgroup folder that is ours */
	size_t n_pods, n;
	pid_t pods[HERD_PODS];
	struct herd_client clients[HERD_CLIENTS];
};

/* @clients of @pods, which are of all QoS classes, in turn on all GPUs of the machine, are welcomed
 * at $WEIR_SOCKET. Fails the program when the agent does not take them. */
void herd_gather(struct herd *herd, const char *root, unsigned pods, unsigned clients);
/* They die, and their cgroups go. */
void herd_scatter(struct herd *herd);
