/* Packets with descriptors, for both sides; nothing of it is the library's or the agent's. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define OLD_SIDE_MAX 64 /* connections */

int old_socket(const char *path, int listens);
/* The size of the packet; 0 or less: the end. Descriptors that came are in @fds, *@n of them. */
ssize_t old_receive(int socket, void *packet, size_t size, int *fds, size_t *n);
void old_send(int socket, const void *packet, size_t size, const int *fds, size_t n);
void *old_map(int fd, int protection);
_Noreturn void old_fail(const char *what);
