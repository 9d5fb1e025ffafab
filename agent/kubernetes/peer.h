/* Who is at the other end of a unix socket: the kernel's word, and a descriptor for that process
 * which no other process can inherit by its number. */
#pragma once

#include "kubernetes/container.h"

/* @process: a pidfd, the caller's. -ESRCH: it is gone already; -ENXIO: it is in a PID namespace
 * that we do not see. */
int peer_identify(int socket, struct container_identity *out, int *process);
