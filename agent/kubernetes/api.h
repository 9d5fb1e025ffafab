/* A queue of writes to the API server, which are sent one at a time and in order. */
#pragma once

#include <cjson/cJSON.h>

#include "weir/loop.h"

#define API_QUEUE_MAX 64
#define API_TRIES     5 /* with pauses of 1, 2, 4 and 8 s in between */

struct config_kubernetes;

struct api;

/* @status: HTTP status; 0: no answer. Called from the loop; may queue more calls. */
typedef void api_done_fn(void *userdata, long status);

int api_new(struct api **out, struct loop *loop, const struct config_kubernetes *config);
/* Drops the queue without calling done(). */
void api_free(struct api *api);
/* Queues a write. @method PATCH is a merge patch. @path begins with a slash. Takes @body, even on
 * failure. If the server does not answer or says to try later, the agent tries up to API_TRIES
 * times. -ENOSPC: the queue is full; -ENOMEM. */
int api_send(struct api *api, const char *method, const char *path, cJSON *body, api_done_fn *done,
	     void *userdata);
