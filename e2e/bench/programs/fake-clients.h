/* Many clients in many pods, for the agent's eyes: a process in each pod's cgroup, named as the
 * kubelet names it, connects, and the measuring process takes the connections over. There is no GPU
 * work. */
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
	const char *root; /* our cgroup folder */
	size_t n_pods, n;
	pid_t pods[FAKE_PODS_MAX];
	struct fake_client clients[FAKE_CLIENTS_MAX];
};

/* Registers @clients of @pods at $WEIR_SOCKET, of all QoS classes and on all GPUs in turn. Ends the
 * program when the agent refuses one. */
void fake_clients_start(struct fake_clients *fake, const char *root, unsigned pods,
			unsigned clients);
/* Kills the pods' processes and removes their cgroups. */
void fake_clients_stop(struct fake_clients *fake);
