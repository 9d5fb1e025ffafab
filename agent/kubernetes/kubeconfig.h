/* The API server's address and our credentials, from the files that Kubernetes mounts into a pod or
 * from a kubeconfig file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KUBECONFIG_SIZE_MAX (1u << 20)
#define KUBECONFIG_IN_POD   "/var/run/secrets/kubernetes.io/serviceaccount"

/* A certificate or key: a file, or PEM text. Both NULL: none. */
struct kubeconfig_pem {
	char *file;
	char *data;
	size_t size;
};

struct kubeconfig {
	char *server;  /* https://HOST:PORT, without a slash at its end */
	bool insecure; /* accept any certificate */
	struct kubeconfig_pem authority, certificate, key;
	char *token;
	char *token_file; /* overrides @token; read for each request, because tokens rotate */
};

/* Each returns 0, or a negative errno and one line in @message. */

/* Reads the current context of a kubeconfig. Relative paths start at @folder. */
int kubeconfig_parse(struct kubeconfig *out, const char *text, size_t size, const char *folder,
		     char *message, size_t message_size);
int kubeconfig_load(struct kubeconfig *out, const char *path, char *message, size_t message_size);
/* Reads a pod's credentials in @folder; the server is $KUBERNETES_SERVICE_HOST and _PORT. */
int kubeconfig_in_pod(struct kubeconfig *out, const char *folder, char *message,
		      size_t message_size);
void kubeconfig_deinit(struct kubeconfig *config);

/* The token to use now; empty: none. A negative errno: the file cannot be read. */
int kubeconfig_token(const struct kubeconfig *config, char *out, size_t size);
