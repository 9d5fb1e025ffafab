/* Packets with descriptors, for both sides. Shares no code with the library or the agent. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define OLD_SIDE_MAX 64 /* connections */

int old_socket(const char *path, int listens);
/* Returns the size of the packet; 0 or less: the end. @fds gets *@n descriptors. */
ssize_t old_receive(int socket, void *packet, size_t size, int *fds, size_t *n);
void old_send(int socket, const void *packet, size_t size, const int *fds, size_t n);
void *old_map(int fd, int protection);
_Noreturn void old_fail(const char *what);
