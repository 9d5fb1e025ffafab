#include "kubernetes/pod-fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "kubernetes/api.h"
#include "kubernetes/transfer.h"

#include "weir/base.h"
#include "weir/error.h"

struct pod_fetch {
	const struct config_kubernetes *config;
	struct kubeconfig server;
	struct transfers transfers;
	char namespace_[64], name[254];
	enum pod_fetch_result result;
	uint64_t ended; /* 0: no answer yet */
	struct pod *pod;

	CURL *request; /* NULL: none runs */
	struct curl_slist *headers;
	char *body;
	size_t n;
};

static size_t on_data(char *data, size_t size, size_t n, void *userdata)
{
	struct pod_fetch *fetch = userdata;

	n *= size;
	char *grown =
		fetch->n + n > POD_FETCH_BODY_MAX ? NULL : realloc(fetch->body, fetch->n + n + 1);
	if (!grown)
		return 0;
	memcpy(grown + fetch->n, data, n);
	fetch->body = grown;
	fetch->n += n;
	return n;
}

static void end_request(struct pod_fetch *fetch)
{
	curl_easy_cleanup(take(fetch->request));
	curl_slist_free_all(take(fetch->headers));
	free(take(fetch->body));
	fetch->n = 0;
}

static void read_answer(struct pod_fetch *fetch)
{
	struct podlist list;

	fetch->result = POD_FETCH_FAILED;
	if (podlist_parse(&list, fetch->body ? fetch->body : "", fetch->n, &fetch->config->names,
			  1) < 0)
		return;
	fetch->result = list.n ? POD_FETCH_FOUND : POD_FETCH_NONE;
	if (list.n)
		fetch->pod = take(list.pods[0]);
	podlist_deinit(&list);
}

static void on_done(struct transfers *transfers, CURL *request, CURLcode result)
{
	struct pod_fetch *fetch = container_of(transfers, struct pod_fetch, transfers);
	long status = 0;

	if (result == CURLE_OK)
		curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
	fetch->result = POD_FETCH_FAILED;
	if (status == 200)
		read_answer(fetch);
	fetch->ended = loop_now();
	end_request(fetch);
}

/* Names are a user's: they are escaped. */
static char *make_url(struct pod_fetch *fetch)
{
	char *namespace_ = curl_easy_escape(fetch->request, fetch->namespace_, 0);
	char *name = curl_easy_escape(fetch->request, fetch->name, 0), *url = NULL;

	if (!namespace_ || !name ||
	    asprintf(&url, "%s/api/v1/namespaces/%s/pods?fieldSelector=metadata.name%%3D%s",
		     fetch->server.server, namespace_, name) < 0)
		url = NULL;
	curl_free(namespace_);
	curl_free(name);
	return url;
}

static int start(struct pod_fetch *fetch)
{
	fetch->request = curl_easy_init();
	cleanup(freep) char *url = fetch->request ? make_url(fetch) : NULL;

	if (!url)
		return error_origin(-ENOMEM);
	curl_easy_setopt(fetch->request, CURLOPT_URL, url);
	curl_easy_setopt(fetch->request, CURLOPT_TIMEOUT, (long)POD_FETCH_SECONDS);
	curl_easy_setopt(fetch->request, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(fetch->request, CURLOPT_WRITEDATA, fetch);
	api_prepare(fetch->request, &fetch->headers, &fetch->server);
	return transfers_add(&fetch->transfers, fetch->request);
}

enum pod_fetch_result pod_fetch_get(struct pod_fetch *fetch, const char *namespace_,
				    const char *name, const struct pod **out)
{
	bool same = strcmp(fetch->namespace_, namespace_) == 0 && strcmp(fetch->name, name) == 0;

	*out = NULL;
	if (fetch->request)
		return POD_FETCH_RUNNING;
	if (same && fetch->ended && loop_now() - fetch->ended < POD_FETCH_KEEP_NS) {
		*out = fetch->pod;
		return fetch->result;
	}
	free(take(fetch->pod));
	fetch->ended = 0;
	snprintf(fetch->namespace_, sizeof(fetch->namespace_), "%s", namespace_);
	snprintf(fetch->name, sizeof(fetch->name), "%s", name);
	if (start(fetch) == 0)
		return POD_FETCH_RUNNING;
	end_request(fetch);
	return POD_FETCH_FAILED;
}

int pod_fetch_new(struct pod_fetch **out, struct loop *loop, const struct config_kubernetes *config)
{
	struct pod_fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch)
		return error_origin(-ENOMEM);
	fetch->config = config;
	int r = api_credentials(&fetch->server, config);
	if (r == 0)
		r = transfers_init(&fetch->transfers, loop, on_done);
	if (r < 0)
		pod_fetch_free(take(fetch));
	*out = fetch;
	return r;
}

void pod_fetch_free(struct pod_fetch *fetch)
{
	if (!fetch)
		return;
	if (fetch->request)
		transfers_remove(&fetch->transfers, fetch->request);
	end_request(fetch);
	transfers_deinit(&fetch->transfers);
	kubeconfig_deinit(&fetch->server);
	free(fetch->pod);
	free(fetch);
}
