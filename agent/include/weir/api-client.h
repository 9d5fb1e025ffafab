/* Requests to the API server, each with its whole answer, several at a time. */
#pragma once

#include <stddef.h>

struct loop;
struct api_client;

#define API_CLIENT_ANSWER_MAX (4u << 20)
#define API_CLIENT_SECONDS    10 /* for one request */

/* @status: of HTTP; 0: no answer, and @body is empty. @body ends with a NUL and is valid until this
 * returns. Called from the loop; may send more requests. */
typedef void api_client_fn(void *userdata, long status, const char *body, size_t size);

/* @kubeconfig: a file; empty: the pod's own credentials. Bad credentials are an error, which the
 * log explains. */
int api_client_new(struct api_client **out, struct loop *loop, const char *kubeconfig);
/* Ends all requests without calling back. Accepts NULL. */
void api_client_free(struct api_client *client);

/* @path begins with a slash. @body: JSON, or NULL. PATCH is a server-side apply. Nothing is tried
 * again. */
int api_client_send(struct api_client *client, const char *method, const char *path,
		    const char *body, api_client_fn *done, void *userdata);
