/* /metrics, /healthz and /readyz: libmicrohttpd without threads, its epoll descriptor on our loop.
 */
#pragma once

#include <stdint.h>

struct agent;
struct http;

/* NULL in @out: the configuration wants none. */
int http_new(struct http **out, struct agent *agent);
void http_free(struct http *http);
/* Where it listens, when the configuration said port 0. */
uint16_t http_port(const struct http *http);
