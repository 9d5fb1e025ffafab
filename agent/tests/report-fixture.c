#include "report-fixture.h"

#include "weir/base.h"
#include "weir/log.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct report_server server;
struct reporter reporter;
struct pod *pod;

static void keep(char *out, size_t size, struct MHD_Connection *connection, const char *header)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, header);

	snprintf(out, size, "%s", value ? value : "");
}

static enum MHD_Result answer(void *userdata, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct seen *seen = *state;

	(void)userdata, (void)version;
	if (!seen) {
		seen = &server.seen[server.n++ % SEEN_MAX];
		*seen = (struct seen){0};
		*state = seen;
		snprintf(seen->method, sizeof(seen->method), "%s", method);
		snprintf(seen->path, sizeof(seen->path), "%s", url);
		keep(seen->type, sizeof(seen->type), connection, "Content-Type");
		keep(seen->authorization, sizeof(seen->authorization), connection, "Authorization");
		return MHD_YES;
	}
	if (*upload_size) {
		strncat(seen->body, upload, *upload_size);
		*upload_size = 0;
		return MHD_YES;
	}
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(server.body), (void *)server.body, MHD_RESPMEM_PERSISTENT);
	unsigned status = server.status;
	if (server.failures) {
		server.failures--;
		status = 503;
	}
	enum MHD_Result r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

int report_set_up(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	memset(&server, 0, sizeof(server));
	memset(&reporter, 0, sizeof(reporter));
	server.status = 201;
	server.body = "{}";
	server.daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, NULL,
					 MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
	assert_non_null(server.daemon);
	server.port = MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	strcpy(reporter.kubeconfig, "/tmp/weir-report-XXXXXX");
	int fd = mkstemp(reporter.kubeconfig);
	assert_true(fd >= 0);
	dprintf(fd,
		"clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
		"users: [{name: u, user: {token: secret}}]\n"
		"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
		server.port);
	close(fd);
	strcpy(reporter.node, "n1");
	reporter.config = (struct config_kubernetes){.kubeconfig = reporter.kubeconfig};
	log_set_level(LOG_ERROR);
	assert_int_equal(loop_init(&reporter.loop), 0);
	assert_int_equal(api_new(&reporter.api, &reporter.loop, &reporter.config), 0);
	assert_int_equal(events_new(&reporter.events, &reporter.loop, reporter.api, reporter.node),
			 0);
	assert_int_equal(labels_init(&reporter.labels, &reporter.loop, reporter.api, reporter.node),
			 0);
	pod = calloc(1, sizeof(*pod));
	assert_non_null(pod);
	strcpy(pod->uid, "u-1");
	strcpy(pod->namespace_, "ns");
	strcpy(pod->name, "web");
	return 0;
}

int report_tear_down(void **state)
{
	(void)state;
	free(pod);
	api_free(reporter.api);
	events_free(reporter.events);
	labels_deinit(&reporter.labels);
	loop_deinit(&reporter.loop);
	MHD_stop_daemon(server.daemon);
	return unlink(reporter.kubeconfig);
}

void run_at_least(size_t n)
{
	unsigned more = 50;

	for (int i = 0; i < STEPS_MAX && more; i++) {
		MHD_run(server.daemon);
		loop_step(&reporter.loop, 1);
		if (server.n >= n)
			more--;
	}
	assert_true(server.n >= n);
}

void run_until(size_t n)
{
	run_at_least(n);
	assert_int_equal(server.n, n);
}

const char *text_of(const cJSON *json, const char *a, const char *b)
{
	const cJSON *item = cJSON_GetObjectItem(json, a);

	return cJSON_GetStringValue(b ? cJSON_GetObjectItem(item, b) : item);
}

void expect(const cJSON *json, const char *a, const char *b, const char *expected)
{
	assert_string_equal(text_of(json, a, b), expected);
}
