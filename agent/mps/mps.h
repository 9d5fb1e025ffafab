/* MPS daemons: one for each GPU whose mode is mps, so that a fault stays on its GPU and a container
 * is shown no other GPU's pipes.
 *
 *   starting ──answers──▶ up ──dies──▶ waiting ──▶ starting …       (pauses of 0.1 s to 30 s)
 *                          └── not wanted any more ──▶ draining ── no clients ──▶ ended
 *
 * A GPU's folder, in mps.dir, has `pipe` (the daemon's), `client` (what containers get of that),
 * `log` (the daemon's words), `daemon` (its pid and start, by which the next agent finds it) and,
 * while the daemon answers, `ready`, by which the device plugin knows.
 *
 * A server that has met a fault takes no clients until those that it has are gone, and then
 * recovers by itself. Where it does not, the daemon is started anew. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "scheduler/gpu.h"
#include "mps/mps-process.h"

#include "weir/loop.h"

struct config_mps;

enum mps_state {
	MPS_ENDED,
	MPS_STARTING,
	MPS_UP,
	MPS_SILENT,   /* was up, and does not answer any more */
	MPS_WAITING,  /* to be started again */
	MPS_DRAINING, /* until its last client is gone */
	MPS_ENDING,
};

struct mps_daemon {
	struct mps_daemon *next;
	struct mps *mps;
	char gpu[GPU_ID_SIZE];
	char folder[MPS_PATH_MAX];
	bool wanted;
	enum mps_state state;

	pid_t pid; /* 0: none runs */
	int process;
	struct loop_io death;
	struct loop_timer timer; /* whatever is next */
	struct mps_question question;
	uint64_t since, pause; /* when it came up; before the next start, ns */

	pid_t server;      /* of the answer in hand; 0: none */
	bool faulted;      /* by the last look */
	unsigned stranded; /* looks at a faulted server without clients */
	unsigned silent;   /* questions in a row without an answer */
	uint64_t starts, deaths, faults;
};

struct mps {
	struct loop *loop;
	const struct config_mps *config;
	struct mps_program program;
	bool single_user; /* the program knows no other way */
	bool complained;  /* about its absence */
	struct mps_daemon *daemons;
};

/* Finds the daemons that an earlier agent left. @config stays the caller's. */
int mps_init(struct mps *mps, struct loop *loop, const struct config_mps *config);
/* Leaves the daemons to the next agent, or ends them, as the configuration says. */
void mps_deinit(struct mps *mps);

/* A GPU is to have a daemon, or none. Those that nobody wants end when their last client does. */
void mps_want(struct mps *mps, const char *gpu, bool wanted);
/* Whether every daemon that is wanted answers. */
bool mps_complete(const struct mps *mps);
void mps_metrics_write(FILE *out, const struct mps *mps);
