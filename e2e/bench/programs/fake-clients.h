/* Many clients of the agent in many pods, as far as the agent can tell: processes in cgroups named
 * as the kubelet names them connect, and the one process that measures speaks for all. No GPU work
 * is done. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include <weir/protocol.h>

#define FAKE_PODS_MAX    256u
#define FAKE_CLIENTS_MAX 1024u

struct fake_client {
	unsigned pod, gpu, level;
	int socket;
	struct weir_control_page *control;
	struct weir_status_page *status;
};

struct fake_clients {
	const char *root; /* a cgroup folder that is ours */
	size_t n_pods, n;
	pid_t pods[FAKE_PODS_MAX];
	struct fake_client clients[FAKE_CLIENTS_MAX];
};

/* @clients of @pods, which are of all QoS classes, in turn on all GPUs of the machine, are welcomed
 * at $WEIR_SOCKET. Fails the program when the agent does not take them. */
void fake_clients_start(struct fake_clients *fake, const char *root, unsigned pods,
			unsigned clients);
/* They die, and their cgroups go. */
void fake_clients_stop(struct fake_clients *fake);
