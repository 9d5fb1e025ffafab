/* MPS daemons: one for each GPU whose mode is mps, so that a fault stays on its GPU and a container
 * sees no other GPU's pipes.
 *
 *   starting ──answers──▶ up ──dies──▶ waiting ──▶ starting ...     (pauses of 0.1 s to 30 s)
 *                          └── not wanted ──▶ draining ── no clients ──▶ ended
 *
 * A GPU's folder in mps.dir has:
 *   pipe     the daemon's pipes
 *   client   the part of them that containers get
 *   log      the daemon's output
 *   daemon   its pid and start time, by which the next agent finds it
 *   ready    exists while the daemon answers; for the device plugin
 *
 * After a fault the server admits no clients until its clients are gone, and then recovers. The
 * agent restarts a daemon that does not recover. */
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
	MPS_SILENT,   /* was up, and stopped answering */
	MPS_WAITING,  /* pause before the next start */
	MPS_DRAINING, /* ends with its last client */
	MPS_ENDING,
};

struct mps_daemon {
	struct mps_daemon *next;
	struct mps *mps;
	char gpu[GPU_ID_SIZE];
	char folder[MPS_PATH_MAX];
	bool wanted;
	enum mps_state state;

	pid_t pid; /* 0: no process */
	int process;
	struct loop_io death;
	struct loop_timer timer; /* next look, start or kill, by state */
	struct mps_question question;
	uint64_t since, pause; /* start of the state; pause before the next start, ns */

	pid_t server;      /* as the last answer says; 0: none */
	bool faulted;      /* as of the last look */
	unsigned stranded; /* looks at a faulted server without clients */
	unsigned silent;   /* unanswered questions in a row */
	uint64_t starts, deaths, faults;
};

struct mps {
	struct loop *loop;
	const struct config_mps *config;
	struct mps_program program;
	bool single_user; /* the program does not know -multiuser-server */
	bool complained;  /* logged that the program is missing */
	struct mps_daemon *daemons;
};

/* Finds the daemons that an earlier agent left. @config stays the caller's. */
int mps_init(struct mps *mps, struct loop *loop, const struct config_mps *config);
/* Leaves the daemons to the next agent (mps.keep), or ends them. */
void mps_deinit(struct mps *mps);

/* Says whether a GPU should have a daemon. One that is not wanted ends with its last client. */
void mps_want(struct mps *mps, const char *gpu, bool wanted);
/* All wanted daemons answer. */
bool mps_complete(const struct mps *mps);
void mps_metrics_write(FILE *out, const struct mps *mps);
