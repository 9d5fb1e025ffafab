/* The agent: all its objects, made in the order of agent_init(). Only agent.c and main.c know this
 * struct; each module below gets pointers to the objects that it needs. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "daemon/control/control.h"
#include "weir/http.h"
#include "daemon/reload.h"
#include "daemon/report.h"
#include "daemon/session.h"
#include "mps/mps.h"
#include "profile/coexec-file.h"

struct agent {
	struct config config;
	bool standalone;
	struct loop loop;
	struct loop_signals signals;
	struct reload reload;
	struct gpus gpus;
	struct mps mps;
	struct pipes pipes;
	struct tenants tenants;
	struct memories memories;
	struct scheduler scheduler;
	struct compile compile;
	struct profile_service profiles;
	struct coexec_file coexec_file;
	struct pods *pods; /* NULL: no Kubernetes */
	struct decider decider;
	struct report report;
	struct http_pages pages;
	struct http *http; /* NULL: off */
	struct commands commands;
	struct control control;
	struct sessions sessions;
};

/* Takes @config, even if it fails. Everything listens when this returns. The caller runs the loop,
 * which ends at SIGTERM or SIGINT. */
int agent_init(struct agent *agent, struct config *config, bool standalone);
/* Follows the configuration file. @path stays the caller's; NULL: there is none. */
int agent_follow(struct agent *agent, const char *path);
void agent_deinit(struct agent *agent);
