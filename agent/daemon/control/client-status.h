/* A client in the answer to `weirctl status`. */
#pragma once

#include <cjson/cJSON.h>

struct client;
struct decider;
struct pod_report;

/* NULL: no memory. */
cJSON *status_of_client(const struct client *client, struct decider *decider,
			const struct pod_report *problems);
