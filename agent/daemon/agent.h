/* The agent: every object it has, and the order in which they are made. */
#pragma once

#include <stdbool.h>

#include "compile/compile.h"
#include "config/config.h"
#include "daemon/gpu-socket.h"
#include "scheduler/gpus.h"
#include "daemon/handshake.h"
#include "kubernetes/labels.h"
#include "shm/memory.h"
#include "daemon/monitor.h"
#include "mps/mps.h"
#include "kubernetes/pods.h"
#include "daemon/reload.h"
#include "scheduler/scheduler.h"
#include "common/server.h"
#include "scheduler/tenants.h"
#include "daemon/unregistered.h"

#include "weir/loop.h"

struct session;
struct http;
struct control_peer;
struct events;

struct agent {
	struct config config;
	bool standalone;
	bool stopping; /* clients live on: leave them their demand */
	struct loop loop;
	struct loop_signals signals;
	struct reload reload;
	struct gpus gpus;
	struct mps mps;
	struct tenants tenants;
	struct memories memories;
	bool limited; /* some container of the node has, or had, a limit of memory */
	struct scheduler scheduler;
	struct compile compile;
	struct pods *pods; /* NULL: no Kubernetes */
	bool pods_known;   /* by now, or once */

	/* report.c's. */
	struct monitor monitor;
	struct unregistered unregistered;
	struct api *api;       /* NULL: nothing is told */
	struct events *events; /* NULL: no events are */
	struct labels labels;

	struct server clients;
	struct gpu_sockets gpu_sockets;
	struct session *sessions;
	unsigned n_sessions;
	uint64_t last_number; /* of a client */
	uint64_t refused[HANDSHAKE_REFUSALS];

	struct server control;
	struct control_peer *control_peers;
	unsigned n_control_peers;
	struct http *http; /* NULL: off */
};

/* Takes @config, also when it fails. Everything listens when this returns. */
int agent_init(struct agent *agent, struct config *config, bool standalone);
/* Takes @path's content when it changes. @path stays the caller's; NULL: there is none. */
int agent_follow(struct agent *agent, const char *path);
/* Until SIGTERM or SIGINT. */
int agent_run(struct agent *agent);
void agent_deinit(struct agent *agent);

/* To as many open files as the configuration's clients need. */
void agent_raise_limits(const struct agent *agent);
/* Decides on the level of a tenant, and tells its clients if it is another than before. */
void agent_decide(struct agent *agent, struct tenant *tenant);
/* Its limits of memory, where the defaults may be others than before. */
void agent_apply_limits(struct agent *agent, struct tenant *tenant);
/* Marks the node if a container may have a limit, by a GPU's default, by a rule, or by the words of
 * a pod, of which no process need have come: one that finds no agent is not to allocate. */
void agent_mark_limits(struct agent *agent);
/* The tenant's limit on @gpu, in bytes; 0: none. *@cut (may be NULL): less than its words say. */
uint64_t agent_memory_limit(const struct agent *agent, const struct tenant *tenant,
			    const struct gpu *gpu, bool *cut);
/* It has one on some GPU. */
bool agent_limits(const struct agent *agent, const struct tenant *tenant);
/* What containers have of GPUs' memory, to be shown. */
void agent_read_memory(struct agent *agent);
/* One line for /readyz. Ready: clients can connect, there is a GPU, the pods of the node were known
 * once, and MPS daemons answer where the configuration demands them. Without the API server an
 * agent that knew it goes on, and decides by QoS class. */
const char *agent_condition(const struct agent *agent, bool *ready);
