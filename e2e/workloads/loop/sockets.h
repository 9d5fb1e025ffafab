/* TCP connections on loopback, for clients. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* -1: errno says why. @narrow: with buffers and segments as small as Linux has them, so little is
 * sent or received at a time, by both sides. */
int sockets_connect(uint16_t port, bool narrow);

/* Closes @fd. The other side sees a reset, also of data that it has not read yet. */
void sockets_reset(int fd);
