/* Identity of processes. The kernel reuses a pid, but never a pid with the same start time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A pidfd, for epoll and signals, or a negative errno. */
int process_open(pid_t pid);
/* Sends a signal by a pidfd. 0 or a negative errno. */
int process_signal(int process, int number);
/* It was killed, and the kernel takes it down: its memory is gone, but its descriptors may not be
 * closed yet. */
bool process_is_ending(pid_t pid);
/* Start time in kernel ticks since boot. 0: no such process. */
uint64_t process_started(pid_t pid);
