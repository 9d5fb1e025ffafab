/* The agent's connection to an API server on loopback. Server and client alternate in one thread.
 */
#pragma once

#include "config/config.h"
#include "kubernetes/events.h"
#include "kubernetes/labels.h"
#include "kubernetes/pods.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/loop.h"

#define STEPS_MAX 20000 /* of a millisecond; only a failing test waits that long */
#define SEEN_MAX  64

/* A request. */
struct seen {
	char method[8], path[512], type[64], authorization[64], body[4096];
};

extern struct report_server {
	struct MHD_Daemon *daemon;
	uint16_t port;
	unsigned status, failures; /* number of first requests that are answered 503 */
	const char *body;
	size_t n;
	struct seen seen[SEEN_MAX];
} server;

extern struct reporter {
	struct loop loop;
	struct config_kubernetes config;
	struct api *api;
	struct events *events;
	struct labels labels;
	char kubeconfig[64], empty[1], node[8];
} reporter;

extern struct pod *pod; /* with no containers */

int report_set_up(void **state);
int report_tear_down(void **state);
#define REPORT_TEST(name) cmocka_unit_test_setup_teardown(name, report_set_up, report_tear_down)

/* Runs until the server has seen @n requests, and 50 steps more. */
void run_at_least(size_t n);
/* The same; there are no more than @n. */
void run_until(size_t n);

/* The text @b in @a of @json; @b NULL: the text @a. NULL: there is none. */
const char *text_of(const cJSON *json, const char *a, const char *b);
void expect(const cJSON *json, const char *a, const char *b, const char *expected);
