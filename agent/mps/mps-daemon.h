/* The states of one MPS daemon (mps.h): started, asked each few seconds, and started again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/server.h"
#include "scheduler/gpu/gpu.h"
#include "mps/mps-process.h"

#include "weir/loop.h"

#define MPS_SERVERS_MAX    16  /* of a daemon; more than one if it serves one user at a time */
#define MPS_CLIENTS_MAX    512 /* of a daemon that are looked at */
#define MPS_ANSWER_SECONDS 5

struct config_mps;
struct mps_server;

enum mps_state {
	MPS_ENDED,
	MPS_STARTING,
	MPS_UP,
	MPS_SILENT,   /* was up, and stopped answering */
	MPS_WAITING,  /* pause before the next start */
	MPS_DRAINING, /* ends with its last client */
	MPS_ENDING,
};

/* mps-work.c's. The client whose work the servers are to end. */
struct mps_work {
	struct mps_question question;
	pid_t client;   /* 0: none */
	unsigned asked; /* servers */
	bool done;
};

struct mps_daemon {
	struct mps *mps;
	struct mps_daemon *next; /* not the first member: metric.h */
	struct mps_request request;
	char name[GPU_ID_SIZE + 16]; /* for the log */
	char folder[MPS_PATH_MAX];
	struct gpu *gpu; /* of a level's daemon; NULL: nobody has wanted it yet */
	bool wanted;
	enum mps_state state;

	pid_t pid; /* 0: no process */
	int process;
	struct loop_io death;
	struct loop_timer timer; /* next look, start or kill, by state */
	struct mps_question question;
	struct mps_work work;
	uint64_t since, pause; /* start of the state; pause before the next start, ns */

	/* As the last answers say. Clients only of a level's daemon. */
	pid_t servers[MPS_SERVERS_MAX];
	pid_t clients[MPS_CLIENTS_MAX];
	unsigned n_servers, n_clients;
	struct server socket;      /* agent.sock */
	struct mps_server *joined; /* servers that are connected there */
	unsigned n_unknown;        /* of them: the daemon has not named them yet */

	bool faulted;      /* as of the last look */
	unsigned stranded; /* looks at a faulted server without clients */
	unsigned silent;   /* unanswered questions in a row */
	uint64_t starts, deaths, faults;
	uint64_t foreign; /* processes seen in its server that were not given it */
};

/* About daemons of levels. */
struct mps_listener {
	void (*up)(struct mps *mps, struct mps_daemon *daemon);
	/* @daemon->servers and @daemon->clients are new. */
	void (*looked)(struct mps *mps, struct mps_daemon *daemon);
};

struct mps {
	struct loop *loop;
	const struct config_mps *config;
	struct mps_program program;
	bool single_user;                    /* the program does not know -multiuser-server */
	bool complained;                     /* logged that the program is missing */
	struct mps_listener heard;           /* by mps.c, which tells the next one */
	const struct mps_listener *listener; /* NULL: nobody listens */
	struct mps_daemon *daemons;
};

/* @daemon has its mps, request, name and folder. */
int mps_daemon_init(struct mps_daemon *daemon);
void mps_daemon_deinit(struct mps_daemon *daemon);
/* Finds its process, if an earlier agent has started it. */
void mps_daemon_adopt(struct mps_daemon *daemon);
void mps_daemon_want(struct mps_daemon *daemon, bool wanted);
int mps_daemon_make_folders(const struct mps_daemon *daemon);
/* Asks about servers and clients soon. */
void mps_daemon_look_soon(struct mps_daemon *daemon);
/* Its servers are gone. */
void mps_work_forget(struct mps_daemon *daemon);
/* The socket of its server, opened with O_PATH; -EAGAIN: it starts; another errno: there is none.
 */
int mps_open(const struct mps_daemon *daemon);
