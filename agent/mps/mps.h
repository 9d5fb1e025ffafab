/* MPS daemons: one for each GPU whose mode is mps, so that a fault stays on its GPU and a container
 * sees no other GPU's pipes. In mode mps-per-level one for each level of the GPU that has had a
 * client, so that a fault stays in its level and the hardware time-slices levels.
 *
 *   starting ──answers──▶ up ──dies──▶ waiting ──▶ starting ...     (pauses of 0.1 s to 30 s)
 *                          └── not wanted ──▶ draining ── no clients ──▶ ended
 *
 * A GPU's folder in mps.dir has, and its folders level-N have:
 *   pipe        the daemon's pipes
 *   client      the part of them that containers get
 *   log         the daemon's output
 *   daemon      its pid and start time, by which the next agent finds it
 *   ready       exists while the daemon answers; for the device plugin
 *   agent.sock  of a level: here its server hands over its channel groups (mps-server.h)
 *
 * After a fault the server admits no clients until its clients are gone, and then recovers. The
 * agent restarts a daemon that does not recover. */
#pragma once

#include "mps/mps-daemon.h"

/* Finds the daemons that an earlier agent left. @config stays the caller's. */
int mps_init(struct mps *mps, struct loop *loop, const struct config_mps *config);
/* Leaves the daemons to the next agent (mps.keep), or ends them. */
void mps_deinit(struct mps *mps);

/* Says whether a GPU should have a daemon. One that is not wanted ends with its last client. */
void mps_want(struct mps *mps, const char *gpu, bool wanted);
/* The daemon of a level, which is wanted from now on. NULL: no memory. */
struct mps_daemon *mps_want_level(struct mps *mps, struct gpu *gpu, uint8_t level);
/* Says whether a GPU may have daemons of levels. Those that run are wanted then. */
void mps_allow_levels(struct mps *mps, struct gpu *gpu, bool allowed);
/* Of a client whose work its server is to end. */
enum mps_ending {
	MPS_NOT_SERVED, /* no server of ours has it */
	MPS_ENDS_WORK,  /* call again */
	MPS_ENDED_WORK, /* or the server has not answered in time */
};

/* Has the server of the GPU's client @pid end its work on the GPU (mps-work.c). If that ended with
 * the process, it would be a fault of all clients of the server. */
enum mps_ending mps_end_work(struct mps *mps, const struct gpu *gpu, pid_t pid);
/* All wanted daemons answer. */
bool mps_complete(const struct mps *mps);
void mps_metrics_write(FILE *out, const struct mps *mps);
