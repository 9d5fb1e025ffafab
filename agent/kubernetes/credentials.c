#include "kubernetes/credentials.h"

#include <stdio.h>
#include <string.h>

#include "weir/log.h"

#define CONNECT_SECONDS 5
#define TOKEN_MAX       16384

int credentials_load(struct kubeconfig *out, const char *kubeconfig)
{
	char message[256] = "";
	int r = kubeconfig[0] ? kubeconfig_load(out, kubeconfig, message, sizeof(message))
			      : kubeconfig_in_pod(out, KUBECONFIG_IN_POD, message, sizeof(message));

	if (r < 0 && message[0])
		log_error("%s", message);
	return r;
}

static void set_pem(CURL *request, CURLoption file, CURLoption blob,
		    const struct kubeconfig_pem *pem)
{
	if (pem->data) {
		struct curl_blob data = {pem->data, pem->size, CURL_BLOB_COPY};
		curl_easy_setopt(request, blob, &data);
	} else if (pem->file) {
		curl_easy_setopt(request, file, pem->file);
	}
}

static void set_credentials(CURL *request, struct curl_slist **headers,
			    const struct kubeconfig *server)
{
	char token[TOKEN_MAX], header[TOKEN_MAX + 32];

	set_pem(request, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, &server->authority);
	set_pem(request, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, &server->certificate);
	set_pem(request, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, &server->key);
	if (server->insecure) {
		curl_easy_setopt(request, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(request, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	int r = kubeconfig_token(server, token, sizeof(token));
	if (r < 0) {
		log_limited(LOG_WARNING, 60, "cannot read the token %s: %s", server->token_file,
			    strerror(-r));
	} else if (token[0]) {
		snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
		*headers = curl_slist_append(*headers, header);
	}
}

void credentials_apply(CURL *request, struct curl_slist **headers, const struct kubeconfig *server)
{
	curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(request, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	set_credentials(request, headers, server);
	*headers = curl_slist_append(*headers, "Accept: application/json");
	curl_easy_setopt(request, CURLOPT_HTTPHEADER, *headers);
}
