/* NVIDIA's program for MPS, nvidia-cuda-mps-control: as a daemon, and as the one that asks a daemon
 * things (it reads a command from its input). Nothing of it is linked, and its socket is spoken to
 * by itself alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "weir/loop.h"

#define MPS_ANSWER_MAX 4096
#define MPS_PATH_MAX   256

struct config_mps;

/* How the program is started. */
struct mps_program {
	char path[MPS_PATH_MAX]; /* empty: it is nowhere */
	const char *root;        /* of its file system; empty: ours */
};

/* Looks for the program, again at each call. False: it is nowhere, or not executable. */
bool mps_program_find(struct mps_program *out, const struct config_mps *config);

/* A daemon for the GPU of that UUID, with its pipes in @folder/pipe. Its words go to @folder/log.
 * It outlives us. The pid, or a negative errno. */
pid_t mps_program_start(const struct mps_program *program, const char *folder, const char *gpu,
			bool multi_user);

struct mps_question;
/* @answer: what it said, cut off at MPS_ANSWER_MAX; NULL: it failed, or took too long. The question
 * may be put anew from here. */
typedef void mps_answered_fn(struct mps_question *question, const char *answer);

/* To be embedded. */
struct mps_question {
	struct loop_io death;
	struct loop_timer deadline;
	pid_t pid; /* 0: none is out */
	int process, output;
	mps_answered_fn *answered;
};

/* @seconds: until it is given up. 0 or a negative errno. */
int mps_ask(struct mps_question *question, struct loop *loop, const struct mps_program *program,
	    const char *folder, const char *command, unsigned seconds, mps_answered_fn *answered);
/* Forgets it. Accepts a zeroed one. */
void mps_question_stop(struct mps_question *question);

/* @folder/daemon: which process a GPU's daemon is. */
void mps_daemon_write(const char *folder, pid_t pid);
/* 0: the file names none; -ESRCH: one that is dead. */
pid_t mps_daemon_read(const char *folder);
/* Returns when it is gone: it gets SIGTERM, and SIGKILL after some seconds. */
void mps_daemon_end(pid_t pid);
