/* NVIDIA's program nvidia-cuda-mps-control. It runs as a daemon, or as a client that reads a
 * command from its input and asks the daemon. Weir links none of it and does not speak its
 * protocol. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/program-run.h"
#include "scheduler/gpu/gpu-id.h"

#include "weir/loop.h"

#define MPS_PATH_MAX 256
#define MPS_ALL      0xff /* the level of a daemon that serves all levels */
/* In the environment of a level's daemon and its server: where libweir-mps.so hands over the
 * server's channel groups. */
#define MPS_SOCKET_VARIABLE "WEIR_MPS_SOCKET"

struct config_mps;

struct mps_program {
	char path[MPS_PATH_MAX];    /* empty: not found */
	char preload[MPS_PATH_MAX]; /* libweir-mps.so; empty: not found */
	const char *root;           /* root of its file system; empty: ours */
};

/* Which daemon. */
struct mps_request {
	char gpu[GPU_ID_SIZE];
	bool multi_user;
	uint8_t level; /* or MPS_ALL */
};

/* Searches for the program at each call. False: not found, or not executable. */
bool mps_program_find(struct mps_program *out, const struct config_mps *config);

/* Starts a daemon with pipes in @folder/pipe and output in @folder/log, and names its process in
 * @folder/daemon. It outlives us. The pid, or a negative errno. */
pid_t mps_program_start(const struct mps_program *program, const char *folder,
			const struct mps_request *request);

struct mps_question;
/* @answer: the program's output, at most PROGRAM_OUTPUT_MAX bytes; NULL: it failed or took too
 * long. The callee may ask again. */
typedef void mps_answered_fn(struct mps_question *question, const char *answer);

/* A running question; to be embedded. */
struct mps_question {
	struct program_run run;
	mps_answered_fn *answered;
};

/* Gives up after @seconds. 0 or a negative errno. */
int mps_ask(struct mps_question *question, struct loop *loop, const struct mps_program *program,
	    const char *folder, const char *command, unsigned seconds, mps_answered_fn *answered);
/* Cancels the question. Accepts a zeroed one. */
void mps_question_stop(struct mps_question *question);

/* @folder/@name, truncated if it is too long. */
struct mps_path {
	char text[MPS_PATH_MAX + 16];
};
struct mps_path mps_path(const char *folder, const char *name);
/* The daemon's folder in @dir: DIR/GPU-..., or DIR/GPU-.../level-N. */
void mps_folder(char out[MPS_PATH_MAX], const char *dir, const struct mps_request *request);

/* The pid in @folder/daemon; 0: the file names none; -ESRCH: the process is dead. */
pid_t mps_daemon_read(const char *folder);
/* Sends SIGTERM, and SIGKILL after 3 s; returns when the process is gone. */
void mps_daemon_end(pid_t pid);

/* weir-mps starts MPS daemons at the agent's request. A container's processes end with it, so
 * daemons that are the agent's children would end at each upgrade of the agent. weir-mps stays.
 *
 * A request is one datagram to @dir/keeper.sock (a deprecated word), which belongs to root. There
 * is no answer: weir-mps names the daemon's process in the daemon's folder. A weir-mps of before
 * 0.2.0 ignores requests for levels. */

/* @dir: mps.dir. A negative errno: weir-mps does not listen, or is too busy. */
int mps_supervisor_ask(const char *dir, const struct mps_request *request);
/* A descriptor that receives requests, which only root can send; or a negative errno. */
int mps_supervisor_listen(const char *dir);
/* The next request; false: none now. Drops everything else. */
bool mps_supervisor_next(int fd, struct mps_request *out);
