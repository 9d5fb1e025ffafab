/* The process at the other end of a unix socket, as the kernel reports it, and a pidfd for it,
 * which stays valid if the kernel reuses the pid. */
#pragma once

#include "kubernetes/container.h"

/* @process: a pidfd for the caller to close. -ESRCH: the process is gone; -ENXIO: it is in a PID
 * namespace that we do not see. */
int peer_identify(int socket, struct container_identity *out, int *process);
