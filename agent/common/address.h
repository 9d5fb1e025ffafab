/* `HOST:PORT` with a numeric host, `[HOST]:PORT` for IPv6, into a socket address. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

/* False: malformed. */
bool address_parse(const char *text, struct sockaddr_storage *out, socklen_t *size);
