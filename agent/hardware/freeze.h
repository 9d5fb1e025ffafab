/* Stops processes by signal. The last resort against one that ends its stops by itself: a process
 * that does not run cannot call the driver. It cannot let itself go on either, when the agent is
 * killed. So a file for each names it, and a process beside the agent (freeze-watch.h), or else the
 * next agent, lets it go on.
 *
 * Only one process at a time may do any of this: the freezer's owner, who has a lock on a file in
 * the agent's folder of state. The kernel takes the lock away when its owner has died. So whoever
 * gets it knows that what is stopped by then was stopped by somebody dead. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/folder.h"

struct freezer {
	const struct folder *root; /* of state, with a folder for each GPU */
	int lock;                  /* -1: this process does not own it */
};

/* Lets all go on that a former owner has stopped, unless this process is the owner already. 0;
 * -EAGAIN: another process is; or another negative errno. */
int freezer_claim(struct freezer *freezer);
/* Gives it up. */
void freezer_deinit(struct freezer *freezer);

/* @process: a pidfd. @gpu: the name of its folder. 0, or as freezer_claim(), which it calls. */
int freeze_stop(struct freezer *freezer, const char *gpu, pid_t pid, int process);
/* Does nothing if it is not stopped. */
void freeze_go_on(const struct freezer *freezer, const char *gpu, pid_t pid, int process);
