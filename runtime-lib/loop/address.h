/* Addresses as text: "127.0.0.1:80", "[::1]:80", "unix:/path". */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* -EINVAL: not an address. -ENAMETOOLONG: the path does not fit. */
int address_parse(const char *text, struct sockaddr_storage *out, socklen_t *size);

/* A listening socket. A negative errno. A socket of an earlier process at a Unix path is replaced
 * if nobody listens there. @least: bytes with which a connection by TCP is readable. */
int address_listen(const char *text, int backlog, int least, uint16_t *port);
