#include "kubernetes/kubeconfig.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct reader {
	struct yaml_file file;
	const char *folder; /* of relative paths */
};

static int __attribute__((format(printf, 4, 5)))
fail(char *message, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, size, format, args);
	va_end(args);
	return error;
}

static const char *scalar(const yaml_node_t *node)
{
	/* A NUL inside would truncate the value. */
	if (!node || node->type != YAML_SCALAR_NODE ||
	    strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL;
	return (const char *)node->data.scalar.value;
}

/* The value of @key in a mapping; NULL: none. */
static yaml_node_t *lookup(struct reader *r, const yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	     pair < map->data.mapping.pairs.top; pair++) {
		const char *name = scalar(yaml_document_get_node(&r->file.document, pair->key));
		if (name && strcmp(name, key) == 0)
			return yaml_document_get_node(&r->file.document, pair->value);
	}
	return NULL;
}

/* The mapping @what in the entry @name of the list @list. */
static yaml_node_t *lookup_named(struct reader *r, const char *list, const char *name,
				 const char *what)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->file.document);
	const yaml_node_t *entries = lookup(r, root, list);

	if (!entries || entries->type != YAML_SEQUENCE_NODE)
		return NULL;
	for (const yaml_node_item_t *item = entries->data.sequence.items.start;
	     item < entries->data.sequence.items.top; item++) {
		const yaml_node_t *entry = yaml_document_get_node(&r->file.document, *item);
		const char *entry_name = scalar(lookup(r, entry, "name"));
		if (entry_name && strcmp(entry_name, name) == 0)
			return lookup(r, entry, what);
	}
	return NULL;
}

static int copy_text(char **out, const char *text)
{
	*out = strdup(text);
	return *out ? 0 : error_origin(-ENOMEM);
}

static int join_path(char **out, const char *folder, const char *path)
{
	int r = *path == '/' ? asprintf(out, "%s", path) : asprintf(out, "%s/%s", folder, path);

	if (r < 0) {
		*out = NULL;
		return error_origin(-ENOMEM);
	}
	return 0;
}

/* -1: not a base64 digit. */
static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes base64 with line breaks and padding. False: malformed. @out has room for 3/4 of @text.
 */
static bool decode(const char *text, char *out, size_t *size)
{
	uint32_t bits = 0;
	size_t n = 0, digits = 0;

	for (; *text && *text != '='; text++) {
		if (*text == '\n' || *text == '\r' || *text == ' ')
			continue;
		int value = digit(*text);
		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		if (++digits % 4 != 1)
			out[n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)));
	}
	*size = n;
	return digits % 4 != 1 && text[strspn(text, "= \r\n")] == '\0';
}

/* NAME-data (base64) overrides NAME (a path), as everywhere in Kubernetes. */
static int read_pem(struct reader *r, const yaml_node_t *map, const char *name,
		    struct kubeconfig_pem *out)
{
	char data_name[64];

	snprintf(data_name, sizeof(data_name), "%s-data", name);
	const char *data = scalar(lookup(r, map, data_name));
	const char *path = scalar(lookup(r, map, name));
	if (data && *data) {
		out->data = malloc(strlen(data) + 1);
		if (!out->data)
			return error_origin(-ENOMEM);
		if (!decode(data, out->data, &out->size))
			return fail(r->file.message, r->file.message_size, -EINVAL,
				    "kubeconfig: %s is not base64", data_name);
		return 0;
	}
	return path && *path ? join_path(&out->file, r->folder, path) : 0;
}

static int read_cluster(struct reader *r, const yaml_node_t *cluster, struct kubeconfig *out)
{
	const char *server = scalar(lookup(r, cluster, "server"));
	const char *insecure = scalar(lookup(r, cluster, "insecure-skip-tls-verify"));

	if (!server || (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0))
		return fail(r->file.message, r->file.message_size, -EINVAL,
			    "kubeconfig: the cluster's server is missing or no http(s) URL");
	out->insecure = insecure && strcmp(insecure, "true") == 0;
	int e = copy_text(&out->server, server);
	for (size_t n = strlen(server); e == 0 && n && out->server[n - 1] == '/'; n--)
		out->server[n - 1] = '\0';
	return e < 0 ? e : read_pem(r, cluster, "certificate-authority", &out->authority);
}

static int read_user(struct reader *r, const yaml_node_t *user, struct kubeconfig *out)
{
	const char *token = scalar(lookup(r, user, "token"));
	const char *token_file = scalar(lookup(r, user, "tokenFile"));
	int e = 0;

	if (lookup(r, user, "exec") || lookup(r, user, "auth-provider"))
		return fail(r->file.message, r->file.message_size, -ENOTSUP,
			    "kubeconfig: the user's credentials come from a program (exec or "
			    "auth-provider); only tokens and certificates are supported");
	if (token)
		e = copy_text(&out->token, token);
	if (e == 0 && token_file)
		e = join_path(&out->token_file, r->folder, token_file);
	if (e == 0)
		e = read_pem(r, user, "client-certificate", &out->certificate);
	return e < 0 ? e : read_pem(r, user, "client-key", &out->key);
}

static int read_document(struct reader *r, struct kubeconfig *out)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->file.document);
	const char *current = scalar(lookup(r, root, "current-context"));
	const yaml_node_t *context =
		current ? lookup_named(r, "contexts", current, "context") : NULL;
	const char *cluster = scalar(lookup(r, context, "cluster"));
	const char *user = scalar(lookup(r, context, "user"));

	if (!cluster)
		return fail(r->file.message, r->file.message_size, -EINVAL,
			    "kubeconfig: current-context names no context with a cluster");
	int e = read_cluster(r, lookup_named(r, "clusters", cluster, "cluster"), out);
	if (e < 0 || !user)
		return e;
	return read_user(r, lookup_named(r, "users", user, "user"), out);
}

int kubeconfig_parse(struct kubeconfig *out, const char *text, size_t size, const char *folder,
		     char *message, size_t message_size)
{
	struct reader reader = {
		{.name = "kubeconfig", .message = message, .message_size = message_size}, folder};

	*out = (struct kubeconfig){0};
	if (size > KUBECONFIG_SIZE_MAX)
		return fail(message, message_size, -E2BIG, "kubeconfig: larger than 1 MiB");
	int r = yaml_open(&reader.file, text, size);
	if (r == 0)
		r = read_document(&reader, out);
	yaml_document_delete(&reader.file.document);
	if (r < 0)
		kubeconfig_deinit(out);
	return r;
}

int kubeconfig_load(struct kubeconfig *out, const char *path, char *message, size_t message_size)
{
	const char *slash = strrchr(path, '/');
	char folder[4096] = ".";
	cleanup(freep) char *text = NULL;
	size_t size;
	int r = yaml_load_file(path, KUBECONFIG_SIZE_MAX, &text, &size, message, message_size);

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	return r < 0 ? r : kubeconfig_parse(out, text, size, folder, message, message_size);
}

int kubeconfig_in_pod(struct kubeconfig *out, const char *folder, char *message,
		      size_t message_size)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	*out = (struct kubeconfig){0};
	if (!host || !*host || !port || !*port)
		return fail(message, message_size, -ENOENT,
			    "not in a pod ($KUBERNETES_SERVICE_HOST is not set) and no kubeconfig "
			    "given");
	bool v6 = strchr(host, ':') != NULL;
	if (asprintf(&out->server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) <
	    0) {
		out->server = NULL;
		return error_origin(-ENOMEM);
	}
	int r = join_path(&out->authority.file, folder, "ca.crt");
	if (r == 0)
		r = join_path(&out->token_file, folder, "token");
	if (r < 0)
		kubeconfig_deinit(out);
	return r;
}

static void pem_deinit(struct kubeconfig_pem *pem)
{
	free(pem->file);
	free(pem->data);
}

void kubeconfig_deinit(struct kubeconfig *config)
{
	free(config->server);
	free(config->token);
	free(config->token_file);
	pem_deinit(&config->authority);
	pem_deinit(&config->certificate);
	pem_deinit(&config->key);
	*config = (struct kubeconfig){0};
}

int kubeconfig_token(const struct kubeconfig *config, char *out, size_t size)
{
	const char *token = config->token ? config->token : "";
	ssize_t n = (ssize_t)strlen(token);

	if (config->token_file)
		n = file_read(AT_FDCWD, config->token_file, out, size);
	else
		snprintf(out, size, "%s", token);
	if (n < 0 || n >= (ssize_t)size - 1)
		return n < 0 ? (int)n : -E2BIG;
	/* The token goes into a header line: keep only its first line. */
	out[strcspn(out, " \r\n")] = '\0';
	return 0;
}
