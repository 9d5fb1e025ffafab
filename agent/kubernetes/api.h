/* Access to the API server: what all requests share, and a queue of writes, which are sent one at a
 * time and in order. */
#pragma once

#include <cjson/cJSON.h>
#include <curl/curl.h>

#include "kubernetes/kubeconfig.h"

#include "weir/loop.h"

#define API_QUEUE_MAX 64
#define API_TRIES     5 /* with pauses of 1, 2, 4 and 8 s in between */

struct config_kubernetes;

/* Loads the credentials that @config names, or the pod's own. Logs what is wrong with them.
 */
int api_credentials(struct kubeconfig *out, const struct config_kubernetes *config);
/* Sets the server, the credentials and the headers of @request. Appends to @headers, which must
 * live as long as @request. */
void api_prepare(CURL *request, struct curl_slist **headers, const struct kubeconfig *server);

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
