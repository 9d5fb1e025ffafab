/* Stops processes by signal. The last resort against one that ends its stops by itself: a process
 * that does not run cannot call the driver. A file for each in the GPU's folder names it, so that
 * the next agent lets it go on if this one dies. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/folder.h"

/* @process: a pidfd. @gpu: the folder's name in @root. 0 or a negative errno. */
int freeze_stop(const struct folder *root, const char *gpu, pid_t pid, int process);
/* Does nothing if it is not stopped. */
void freeze_go_on(const struct folder *root, const char *gpu, pid_t pid, int process);
/* All that an earlier agent left. */
void freeze_recover(const struct folder *root, const char *gpu);
