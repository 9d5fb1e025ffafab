/* What every request to the API server carries: address, certificates, token. */
#pragma once

#include <curl/curl.h>

#include "kubernetes/kubeconfig.h"

/* Loads the file @kubeconfig; empty: the pod's own credentials. Logs what is wrong with them. */
int credentials_load(struct kubeconfig *out, const char *kubeconfig);
/* Sets the server, the credentials and the headers of @request. Appends to @headers, which must
 * live as long as @request. */
void credentials_apply(CURL *request, struct curl_slist **headers, const struct kubeconfig *server);
