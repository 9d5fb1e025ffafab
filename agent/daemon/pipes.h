/* GPUs of mode mps-per-level: which MPS server a process joins. It asks before its first call of
 * the driver (PIPES), and gets the server of its container's level. A process that is seen in a
 * server that it was not given is reported.
 *
 * The servers are those of mps/mps.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "config/config.h"
#include "mps/mps.h"
#include "scheduler/client.h"
#include "scheduler/gpu/gpus.h"

#define PIPES_PRUNE_NS 10000000000ull

struct events;
struct gpu_sockets;
struct pods;
struct mps_process;

struct pipes {
	const struct config *config;
	struct mps *mps;
	const struct gpus *gpus;
	struct pods *pods;     /* NULL: no Kubernetes */
	struct events *events; /* NULL: none are sent */
	const struct gpu_sockets *sockets;
	struct mps_process *all; /* hash by pid */
	uint64_t pruned;
};

/* The GPU that the question is about; NULL: it has no servers of levels. @only: the process may use
 * no other; NULL: any. @uuid: zeros: the only GPU. */
struct gpu *pipes_gpu(const struct pipes *pipes, const struct gpu *only, const uint8_t uuid[16]);
/* False: the level's daemon starts, and answers soon. */
bool pipes_ready(struct pipes *pipes, struct gpu *gpu, uint8_t level);
/* Answers the process @pid. @gpu: NULL: there is no server for it. */
int pipes_answer(struct pipes *pipes, int socket, struct gpu *gpu, uint8_t level, pid_t pid);
/* Tells the process not to wait for the answer for less than WEIR_PIPES_WAIT_MS. */
int pipes_answer_later(int socket);
/* Gives the client the server of its level, if its process has joined another level's. */
void pipes_move(struct pipes *pipes, const struct client *client);

/* A daemon answers: clients of its level may have waited for it. */
void pipes_daemon_up(struct pipes *pipes, const struct mps_daemon *daemon);
/* Looks who is in its server. */
void pipes_daemon_looked(struct pipes *pipes, struct mps_daemon *daemon);

/* Makes or removes the links beside the agent's sockets, as the configuration says. */
void pipes_link(struct pipes *pipes);
void pipes_deinit(struct pipes *pipes);
