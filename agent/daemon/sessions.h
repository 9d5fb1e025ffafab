/* All sessions of the agent (session.h), and what they need of it. */
#pragma once

#include "compile/compile.h"
#include "daemon/clients.h"
#include "daemon/decider.h"
#include "daemon/gpu-socket.h"
#include "daemon/memory-wait.h"
#include "daemon/pipes.h"
#include "daemon/session-state.h"
#include "profile/profile-client.h"

struct session;
struct sessions;
typedef void session_new_gpu_fn(struct sessions *sessions, struct gpu *gpu);

struct sessions {
	struct loop *loop;
	const struct config *config;
	struct decider *decider;
	struct gpus *gpus;
	struct tenants *tenants;
	struct memories *memories;
	struct scheduler *scheduler;
	struct compile *compile;
	struct profile_service *profiles;
	struct pipes *pipes;
	session_new_gpu_fn *new_gpu; /* configures a GPU on which a client arrives */

	struct server server;
	struct gpu_sockets gpu_sockets;
	struct session *all;
	unsigned n;
	uint64_t refused[SESSION_REFUSALS];
	struct clients clients;
};
