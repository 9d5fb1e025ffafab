/* Processes as the kernel names them: a pid is given out again, a pid with a time is not. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* A descriptor of it (a pidfd), for epoll and signals. -errno: there is none. */
int process_open(pid_t pid);
/* When it was started, in the kernel's ticks since boot. 0: it is gone. */
uint64_t process_started(pid_t pid);
