#include "kubernetes/pod-fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"

#include "weir/api-client.h"
#include "weir/base.h"
#include "weir/error.h"

struct pod_fetch {
	const struct config_kubernetes *config;
	struct api_client *client;
	char namespace_[64], name[254];
	enum pod_fetch_result result;
	bool running;
	uint64_t ended; /* 0: no answer yet */
	struct pod *pod;
};

static void answered(void *userdata, long status, const char *body, size_t size)
{
	struct pod_fetch *fetch = userdata;
	struct podlist list;

	fetch->running = false;
	fetch->ended = loop_now();
	fetch->result = POD_FETCH_FAILED;
	if (status != 200 || podlist_parse(&list, body, size, &fetch->config->names, 1) < 0)
		return;
	fetch->result = list.n ? POD_FETCH_FOUND : POD_FETCH_NONE;
	if (list.n)
		fetch->pod = take(list.pods[0]);
	podlist_deinit(&list);
}

/* Names are a user's: they are escaped. */
static int start(struct pod_fetch *fetch)
{
	char *namespace_ = curl_easy_escape(NULL, fetch->namespace_, 0);
	char *name = curl_easy_escape(NULL, fetch->name, 0);
	cleanup(freep) char *path = NULL;

	if (!namespace_ || !name ||
	    asprintf(&path, "/api/v1/namespaces/%s/pods?fieldSelector=metadata.name%%3D%s",
		     namespace_, name) < 0)
		path = NULL;
	curl_free(namespace_);
	curl_free(name);
	return path ? api_client_send(fetch->client, "GET", path, NULL, answered, fetch)
		    : error_origin(-ENOMEM);
}

enum pod_fetch_result pod_fetch_get(struct pod_fetch *fetch, const char *namespace_,
				    const char *name, const struct pod **out)
{
	bool same = strcmp(fetch->namespace_, namespace_) == 0 && strcmp(fetch->name, name) == 0;

	*out = NULL;
	if (fetch->running)
		return POD_FETCH_RUNNING;
	if (same && fetch->ended && loop_now() - fetch->ended < POD_FETCH_KEEP_NS) {
		*out = fetch->pod;
		return fetch->result;
	}
	free(take(fetch->pod));
	fetch->ended = 0;
	snprintf(fetch->namespace_, sizeof(fetch->namespace_), "%s", namespace_);
	snprintf(fetch->name, sizeof(fetch->name), "%s", name);
	fetch->running = start(fetch) == 0;
	return fetch->running ? POD_FETCH_RUNNING : POD_FETCH_FAILED;
}

int pod_fetch_new(struct pod_fetch **out, struct loop *loop, const struct config_kubernetes *config)
{
	struct pod_fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch)
		return error_origin(-ENOMEM);
	fetch->config = config;
	int r = api_client_new(&fetch->client, loop, config->kubeconfig);
	if (r < 0)
		pod_fetch_free(take(fetch));
	*out = fetch;
	return r;
}

void pod_fetch_free(struct pod_fetch *fetch)
{
	if (!fetch)
		return;
	api_client_free(fetch->client);
	free(fetch->pod);
	free(fetch);
}
