#include "kubernetes/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "config/config.h"
#include "kubernetes/credentials.h"
#include "kubernetes/transfer.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define ANSWER_SECONDS 20
#define ANSWER_SHOWN   160

struct call {
	struct call *prev, *next;
	const char *method;
	char *path, *body;
	unsigned tries;
	api_done_fn *done;
	void *userdata;
};

struct api {
	struct kubeconfig server;
	struct transfers transfers;
	struct loop_timer retry;
	struct call *queue; /* the first is being sent, or waits for @retry */
	unsigned n_queue;
	CURL *request; /* NULL: none is being sent */
	struct curl_slist *headers;
	char answer[ANSWER_SHOWN + 1]; /* the first bytes */
	size_t n_answer;
};

static size_t on_data(char *data, size_t size, size_t n, void *userdata)
{
	struct api *api = userdata;
	size_t taken = size * n, room = smaller(taken, ANSWER_SHOWN - api->n_answer);

	memcpy(api->answer + api->n_answer, data, room);
	api->n_answer += room;
	api->answer[api->n_answer] = '\0';
	return taken;
}

static void end_request(struct api *api)
{
	curl_easy_cleanup(take(api->request));
	curl_slist_free_all(take(api->headers));
}

static void drop_call(struct api *api, struct call *call)
{
	DL_DELETE(api->queue, call);
	api->n_queue--;
	free(call->path);
	free(call->body);
	free(call);
}

static int prepare(struct api *api, const struct call *call)
{
	cleanup(freep) char *url = NULL;
	bool patch = strcmp(call->method, "PATCH") == 0;

	if (asprintf(&url, "%s%s", api->server.server, call->path) < 0) {
		url = NULL;
		return error_origin(-ENOMEM);
	}
	api->n_answer = 0;
	api->answer[0] = '\0';
	curl_easy_setopt(api->request, CURLOPT_URL, url);
	curl_easy_setopt(api->request, CURLOPT_CUSTOMREQUEST, call->method);
	curl_easy_setopt(api->request, CURLOPT_POSTFIELDS, call->body);
	curl_easy_setopt(api->request, CURLOPT_TIMEOUT, (long)ANSWER_SECONDS);
	curl_easy_setopt(api->request, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(api->request, CURLOPT_WRITEDATA, api);
	api->headers =
		curl_slist_append(api->headers, patch ? "Content-Type: application/merge-patch+json"
						      : "Content-Type: application/json");
	credentials_apply(api->request, &api->headers, &api->server);
	return transfers_add(&api->transfers, api->request);
}

/* Sends the first call of the queue, unless one is being sent or a pause is running. */
static void go_on(struct api *api)
{
	struct call *call = api->queue;

	if (!call || api->request)
		return;
	call->tries++;
	api->request = curl_easy_init();
	if (!api->request || prepare(api, call) < 0) {
		end_request(api);
		loop_timer_set(&api->retry, NS_PER_S, 0);
	}
}

static bool is_for_later(long status)
{
	return status == 0 || status == 429 || status >= 500;
}

static void finish(struct api *api, long status)
{
	struct call *call = api->queue;
	api_done_fn *done = call->done;
	void *userdata = call->userdata;

	drop_call(api, call);
	if (done)
		done(userdata, status);
	go_on(api);
}

static void on_done(struct transfers *transfers, CURL *request, CURLcode result)
{
	struct api *api = container_of(transfers, struct api, transfers);
	const struct call *call = api->queue;
	long status = 0;

	if (result == CURLE_OK)
		curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
	end_request(api);
	if (status < 200 || status >= 300)
		log_limited(LOG_WARNING, 60, "%s %s at %s: %s (HTTP status %ld) %s", call->method,
			    call->path, api->server.server, curl_easy_strerror(result), status,
			    api->answer);
	if (is_for_later(status) && call->tries < API_TRIES)
		loop_timer_set(&api->retry, NS_PER_S << (call->tries - 1), 0);
	else
		finish(api, status);
}

static void on_retry(struct loop_timer *timer)
{
	struct api *api = container_of(timer, struct api, retry);

	/* There is no memory even for the request. */
	if (api->queue && api->queue->tries >= API_TRIES)
		finish(api, 0);
	else
		go_on(api);
}

int api_new(struct api **out, struct loop *loop, const struct config_kubernetes *config)
{
	struct api *api = calloc(1, sizeof(*api));

	if (!api)
		return error_origin(-ENOMEM);
	int r = credentials_load(&api->server, config->kubeconfig);
	if (r == 0)
		r = loop_timer_init(&api->retry, loop, on_retry);
	if (r == 0)
		r = transfers_init(&api->transfers, loop, on_done);
	if (r < 0)
		api_free(take(api));
	*out = api;
	return r;
}

void api_free(struct api *api)
{
	if (!api)
		return;
	if (api->request)
		transfers_remove(&api->transfers, api->request);
	end_request(api);
	while (api->queue)
		drop_call(api, api->queue);
	transfers_deinit(&api->transfers);
	loop_timer_deinit(&api->retry);
	kubeconfig_deinit(&api->server);
	free(api);
}

int api_send(struct api *api, const char *method, const char *path, cJSON *body, api_done_fn *done,
	     void *userdata)
{
	struct call *call = api->n_queue < API_QUEUE_MAX ? calloc(1, sizeof(*call)) : NULL;
	char *text = cJSON_PrintUnformatted(body);

	cJSON_Delete(body);
	if (!call || !text || !(call->path = strdup(path))) {
		int r = call ? -ENOMEM : -ENOSPC;
		free(call);
		free(text);
		return r;
	}
	call->method = method;
	call->body = text;
	call->done = done;
	call->userdata = userdata;
	DL_APPEND(api->queue, call);
	api->n_queue++;
	/* By a timer, so that @done is not called before this function returns. */
	if (api->n_queue == 1)
		loop_timer_set(&api->retry, 0, 0);
	return 0;
}
