/* /metrics, /healthz and /readyz: libmicrohttpd without threads, its epoll descriptor on our loop.
 *
 * Whoever reaches the port can use up its connections, so the kubelet's liveness probe does not
 * come here: it is `weirctl health`, over the control socket. A connection is for one request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* From accept until the whole answer is taken, however many bytes still drip. */
#define HTTP_CONNECTION_NS 5000000000ull

struct loop;
struct http;

struct http_pages {
	/* Writes all metrics. A negative errno: no memory. */
	int (*metrics)(void *userdata, FILE *out);
	/* One line for /readyz. */
	const char *(*condition)(void *userdata, bool *ready);
	void *userdata;
};

/* Listens at @address; empty: *@out is NULL. @pages stays the caller's. */
int http_new(struct http **out, struct loop *loop, const char *address,
	     const struct http_pages *pages);
void http_free(struct http *http);
/* The port in use, if the configuration says port 0. */
uint16_t http_port(const struct http *http);
