#include "weir/api-client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "kubernetes/credentials.h"
#include "kubernetes/transfer.h"

#include "weir/base.h"
#include "weir/error.h"

#define APPLY "Content-Type: application/apply-patch+yaml"
#define JSON  "Content-Type: application/json"

struct request {
	struct request *prev, *next;
	CURL *curl;
	struct curl_slist *headers;
	char *sent; /* libcurl does not copy it */
	char *body;
	size_t n;
	api_client_fn *done;
	void *userdata;
};

struct api_client {
	struct kubeconfig server;
	struct transfers transfers;
	struct request *running;
};

static size_t on_data(char *data, size_t size, size_t n, void *userdata)
{
	struct request *request = userdata;

	n *= size;
	char *grown = request->n + n > API_CLIENT_ANSWER_MAX
			      ? NULL
			      : realloc(request->body, request->n + n + 1);
	if (!grown)
		return 0;
	memcpy(grown + request->n, data, n);
	request->body = grown;
	request->n += n;
	grown[request->n] = '\0';
	return n;
}

static void drop(struct request *request)
{
	curl_easy_cleanup(request->curl);
	curl_slist_free_all(request->headers);
	free(request->sent);
	free(request->body);
	free(request);
}

static void on_done(struct transfers *transfers, CURL *curl, CURLcode result)
{
	struct api_client *client = container_of(transfers, struct api_client, transfers);
	struct request *request = NULL;
	long status = 0;

	curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&request);
	if (result == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	DL_DELETE(client->running, request);
	request->done(request->userdata, status, status && request->body ? request->body : "",
		      status ? request->n : 0);
	drop(request);
}

static int prepare(struct api_client *client, struct request *request, const char *method,
		   const char *path)
{
	cleanup(freep) char *url = NULL;

	if (asprintf(&url, "%s%s", client->server.server, path) < 0) {
		url = NULL;
		return error_origin(-ENOMEM);
	}
	curl_easy_setopt(request->curl, CURLOPT_URL, url);
	curl_easy_setopt(request->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(request->curl, CURLOPT_PRIVATE, request);
	curl_easy_setopt(request->curl, CURLOPT_TIMEOUT, (long)API_CLIENT_SECONDS);
	curl_easy_setopt(request->curl, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(request->curl, CURLOPT_WRITEDATA, request);
	if (request->sent) {
		curl_easy_setopt(request->curl, CURLOPT_POSTFIELDS, request->sent);
		request->headers = curl_slist_append(request->headers,
						     strcmp(method, "PATCH") == 0 ? APPLY : JSON);
	}
	credentials_apply(request->curl, &request->headers, &client->server);
	return transfers_add(&client->transfers, request->curl);
}

int api_client_send(struct api_client *client, const char *method, const char *path,
		    const char *body, api_client_fn *done, void *userdata)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return error_origin(-ENOMEM);
	request->done = done;
	request->userdata = userdata;
	request->curl = curl_easy_init();
	request->sent = body ? strdup(body) : NULL;
	bool whole = request->curl && (request->sent || !body);
	int r = whole ? prepare(client, request, method, path) : error_origin(-ENOMEM);
	if (r < 0)
		drop(request);
	else
		DL_APPEND(client->running, request);
	return r;
}

int api_client_new(struct api_client **out, struct loop *loop, const char *kubeconfig)
{
	struct api_client *client = calloc(1, sizeof(*client));

	if (!client)
		return error_origin(-ENOMEM);
	int r = credentials_load(&client->server, kubeconfig);
	if (r == 0)
		r = transfers_init(&client->transfers, loop, on_done);
	if (r < 0)
		api_client_free(take(client));
	*out = client;
	return r;
}

void api_client_free(struct api_client *client)
{
	if (!client)
		return;
	while (client->running) {
		struct request *request = client->running;
		transfers_remove(&client->transfers, request->curl);
		DL_DELETE(client->running, request);
		drop(request);
	}
	transfers_deinit(&client->transfers);
	kubeconfig_deinit(&client->server);
	free(client);
}
