/* What all requests to the API server have in common, and writes to it: one at a time, in the order
 * in which they were asked for. */
#pragma once

#include <curl/curl.h>

#include "kubernetes/kubeconfig.h"

#include "weir/loop.h"

#define API_QUEUE_MAX 64
#define API_TRIES     5 /* with pauses of 1, 2, 4 and 8 s between them */

struct config_kubernetes;

/* The credentials that @config names, or a pod's own. What is wrong with them is said in the log.
 */
int api_credentials(struct kubeconfig *out, const struct config_kubernetes *config);
/* Sets how to reach @server and who we are; @headers, which may have some already, must live as
 * long as @request. */
void api_prepare(CURL *request, struct curl_slist **headers, const struct kubeconfig *server);

struct api;

/* @status: of HTTP; 0: no answer. Called from the loop; may ask for more. */
typedef void api_done_fn(void *userdata, long status);

int api_new(struct api **out, struct loop *loop, const struct config_kubernetes *config);
/* Nobody is told of what was not done yet. */
void api_free(struct api *api);
/* @method PATCH is a merge patch. @path begins with a slash. Takes @body, also when it fails.
 * Without an answer, or with one that says to try later, it is sent again up to API_TRIES times.
 * -ENOSPC: too many wait; -ENOMEM. */
int api_send(struct api *api, const char *method, const char *path, char *body, api_done_fn *done,
	     void *userdata);
