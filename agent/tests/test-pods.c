/* List and watch with a small API server on loopback that answers, ends, breaks connections,
 * refuses and goes away. Server and client alternate in one thread. */
#include "config/config.h"
#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/log.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define STEPS_MAX 20000 /* of 1 ms; only a failing test waits this long */

enum ending { GOES_ON, ENDS, BREAKS };

static struct {
	struct MHD_Daemon *daemon;
	uint16_t port;
	unsigned list_status, watch_status;
	char list[65536];  /* the first page */
	char list2[65536]; /* the page for `continue=more` */
	char events[65536];
	size_t n_events;
	size_t from; /* index of @events where a new watch starts */
	enum ending ending;
	unsigned lists, watches;
	char authorization[256], version[64], selector[128];
} server;

static struct {
	struct loop loop;
	struct config_kubernetes config;
	struct pods *pods;
	unsigned changes;
	char folder[64], kubeconfig[96], token[96], node[16], claims[1];
} client;

/* The server */

struct stream {
	size_t at;
};

static ssize_t read_events(void *userdata, uint64_t position, char *out, size_t room)
{
	struct stream *stream = userdata;
	size_t n = server.n_events - stream->at;

	(void)position;
	if (n == 0)
		return server.ending == ENDS     ? MHD_CONTENT_READER_END_OF_STREAM
		       : server.ending == BREAKS ? MHD_CONTENT_READER_END_WITH_ERROR
						 : 0;
	/* Small pieces: the client must reassemble the lines. */
	n = n < 7 ? n : 7;
	n = n < room ? n : room;
	memcpy(out, server.events + stream->at, n);
	stream->at += n;
	return (ssize_t)n;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r = MHD_queue_response(connection, status, response);

	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result answer_watch(struct MHD_Connection *connection)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	stream->at = server.from;
	struct MHD_Response *response =
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 512, read_events, stream, free);
	enum MHD_Result r = MHD_queue_response(connection, 200, response);
	MHD_destroy_response(response);
	return r;
}

static void keep(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

static enum MHD_Result answer(void *userdata, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	const char *watch = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "watch");
	const char *page =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "continue");

	(void)userdata, (void)version, (void)upload, (void)upload_size, (void)state;
	if (strcmp(method, "GET") != 0 || strcmp(url, "/api/v1/pods") != 0)
		return answer_text(connection, 404, "no");
	keep(server.authorization, sizeof(server.authorization),
	     MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"));
	keep(server.selector, sizeof(server.selector),
	     MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "fieldSelector"));
	if (!watch) {
		server.lists++;
		if (server.list_status != 200)
			return answer_text(connection, server.list_status, "no list");
		return answer_text(connection, 200,
				   page && strcmp(page, "more") == 0 ? server.list2 : server.list);
	}
	server.watches++;
	keep(server.version, sizeof(server.version),
	     MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "resourceVersion"));
	if (server.watch_status != 200)
		return answer_text(connection, server.watch_status, "no watch");
	return answer_watch(connection);
}

static void server_start(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(server.port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	server.daemon = MHD_start_daemon(MHD_USE_EPOLL, server.port, NULL, NULL, answer, NULL,
					 MHD_OPTION_SOCK_ADDR, &address,
					 MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
	assert_non_null(server.daemon);
	server.port = MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

static void server_stop(void)
{
	if (server.daemon)
		MHD_stop_daemon(server.daemon);
	server.daemon = NULL;
}

/* Sends @text to the running watches. */
static void say(const char *text)
{
	size_t n = strlen(text);

	assert_true(n < sizeof(server.events) - server.n_events);
	memcpy(server.events + server.n_events, text, n);
	server.n_events += n;
}

#define LIST(version, items) \
	"{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define POD(uid, version, priority)                                              \
	"{\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"n\",\"name\":\"" uid \
	"\",\"resourceVersion\":\"" version                                      \
	"\",\"annotations\":{\"weir.dev/priority\":\"" priority "\"}}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ERROR(code)         "{\"type\":\"ERROR\",\"object\":{\"code\":" code ",\"message\":\"said no\"}}\n"

/* The client */

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void changed(void *userdata)
{
	(void)userdata;
	client.changes++;
}

static bool is_high(const struct pod *pod)
{
	return strcmp(pod->priority, "high") == 0;
}

static const char *priority(const char *uid)
{
	const struct pod *pod = pods_find(client.pods, uid);

	return pod ? pod->priority : "";
}

static void turn(void)
{
	if (server.daemon)
		MHD_run(server.daemon);
	assert_true(loop_step(&client.loop, 1) >= 0);
}

#define until(condition)                                     \
	do {                                                 \
		unsigned steps_ = 0;                         \
		while (!(condition) && steps_++ < STEPS_MAX) \
			turn();                              \
		assert_true(condition);                      \
	} while (0)

static int setup(void **state)
{
	char text[512];

	(void)state;
	memset(&server, 0, sizeof(server));
	memset(&client, 0, sizeof(client));
	server.list_status = server.watch_status = 200;
	strcpy(server.list, LIST("10", POD("a", "9", "low")));
	server_start();

	strcpy(client.folder, "/tmp/weir-test-XXXXXX");
	assert_non_null(mkdtemp(client.folder));
	snprintf(client.kubeconfig, sizeof(client.kubeconfig), "%s/kubeconfig", client.folder);
	snprintf(client.token, sizeof(client.token), "%s/token", client.folder);
	write_file(client.token, "one\n");
	snprintf(text, sizeof(text),
		 "current-context: x\n"
		 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
		 "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
		 "users: [{name: u, user: {tokenFile: token}}]\n",
		 server.port);
	write_file(client.kubeconfig, text);
	strcpy(client.node, "node/1");
	client.config = (struct config_kubernetes){
		.kubeconfig = client.kubeconfig,
		.node = client.node,
		.claims = client.claims,
		.names = {.priority = "weir.dev/priority",
			  .latency_slo = "weir.dev/latency-slo",
			  .share = "weir.dev/gpu-share"},
	};
	assert_int_equal(loop_init(&client.loop), 0);
	assert_int_equal(pods_new(&client.pods, &client.loop, &client.config, changed, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pods_free(client.pods);
	loop_deinit(&client.loop);
	server_stop();
	unlink(client.kubeconfig);
	unlink(client.token);
	rmdir(client.folder);
	return 0;
}

/* The tests */

static void lists_then_watches(void **state)
{
	(void)state;
	assert_false(pods_connected(client.pods));
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "low");
	assert_string_equal(server.selector, "spec.nodeName=node/1");
	assert_string_equal(server.authorization, "Bearer one");
	assert_string_equal(server.version, "10");
	until(client.changes);
	assert_null(pods_search(client.pods, is_high));

	unsigned before = client.changes;
	say(EVENT("ADDED", POD("b", "11", "high")));
	until(strcmp(priority("b"), "high") == 0);
	assert_string_equal(pods_search(client.pods, is_high)->uid, "b");
	say(EVENT("MODIFIED", POD("a", "12", "normal")) EVENT("DELETED", POD("b", "13", "high")));
	until(strcmp(priority("a"), "normal") == 0 && !pods_find(client.pods, "b"));
	until(client.changes > before);
	assert_int_equal(server.lists, 1);
	assert_int_equal(server.watches, 1);
}

static void reads_every_page(void **state)
{
	(void)state;
	strcpy(server.list, "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"more\"},"
			    "\"items\":[" POD("a", "1", "low") "]}");
	strcpy(server.list2, LIST("10", POD("b", "2", "high")));
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "low");
	assert_string_equal(priority("b"), "high");
	assert_int_equal(server.lists, 2);
}

static void goes_on_where_a_watch_ended(void **state)
{
	(void)state;
	until(pods_connected(client.pods));
	say(EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"55\"}}"));
	server.ending = ENDS;
	server.from = sizeof(EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"55\"}}")) - 1;
	until(server.watches == 2);
	server.ending = GOES_ON;
	assert_string_equal(server.version, "55");
	assert_int_equal(server.lists, 1);
	assert_true(pods_connected(client.pods));
}

static void lists_again_when_a_watch_breaks(void **state)
{
	(void)state;
	until(pods_connected(client.pods));
	strcpy(server.list, LIST("20", POD("c", "19", "high")));
	server.ending = BREAKS;
	until(!pods_connected(client.pods));
	assert_string_equal(priority("a"), "low");
	server.ending = GOES_ON;
	until(pods_connected(client.pods));
	assert_string_equal(priority("c"), "high");
	assert_null(pods_find(client.pods, "a"));
	assert_string_equal(server.version, "20");
}

static void lists_again_when_the_version_is_gone(void **state)
{
	(void)state;
	until(pods_connected(client.pods));
	strcpy(server.list, LIST("30", POD("a", "29", "high")));
	say(ERROR("410"));
	server.from = server.n_events;
	until(server.watches == 2);
	assert_int_equal(server.lists, 2);
	assert_string_equal(server.version, "30");
	assert_string_equal(priority("a"), "high");

	/* Refused by the HTTP status, not by an event of the stream. */
	server.watch_status = 410;
	server.ending = BREAKS;
	until(server.watches == 3);
	server.watch_status = 200;
	server.ending = GOES_ON;
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "high");
}

static void keeps_the_pods_while_the_server_is_away(void **state)
{
	(void)state;
	until(pods_connected(client.pods));
	server_stop();
	until(!pods_connected(client.pods));
	for (unsigned i = 0; i < 500; i++)
		loop_step(&client.loop, 1);
	assert_string_equal(priority("a"), "low");

	strcpy(server.list, LIST("5", POD("a", "4", "critical")));
	write_file(client.token, "two\n");
	server_start();
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "critical");
	assert_string_equal(server.authorization, "Bearer two");
	assert_string_equal(server.version, "5");
}

static void retries_when_refused(void **state)
{
	(void)state;
	server.list_status = 403;
	until(server.lists == 2);
	assert_false(pods_connected(client.pods));
	server.list_status = 200;
	strcpy(server.list, "garbage");
	until(server.lists == 3);
	strcpy(server.list, LIST("10", POD("a", "9", "low")));
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "low");
}

/* pods_hurry() shortens the pause but does not increase the back-off, which would be at least 15 s
 * after so many refusals. */
static void hurrying_shortens_the_pause(void **state)
{
	(void)state;
	server.list_status = 403;
	for (unsigned n = 1; n < 10; n++) {
		until(server.lists == n);
		for (unsigned i = 0; i < 50; i++) /* wait for the answer */
			turn();
		pods_hurry(client.pods);
	}
	until(server.lists == 10);
	server.list_status = 200;
	for (unsigned i = 0; i < 5000 && !pods_connected(client.pods); i++)
		turn();
	assert_true(pods_connected(client.pods));
}

static void gives_up_on_malformed_and_endless_events(void **state)
{
	(void)state;
	until(pods_connected(client.pods));
	say("{\"type\":\n");
	server.from = server.n_events;
	until(server.lists == 2);
	until(pods_connected(client.pods));
	assert_string_equal(priority("a"), "low");
}

static void can_be_freed_during_a_request(void **state)
{
	(void)state;
	until(server.lists == 1);
	pods_free(take(client.pods));
	assert_int_equal(pods_new(&client.pods, &client.loop, &client.config, changed, NULL), 0);
	until(pods_connected(client.pods));
}

static void refuses_bad_credentials(void **state)
{
	struct pods *pods = NULL;

	(void)state;
	write_file(client.kubeconfig, "current-context: [");
	assert_true(pods_new(&pods, &client.loop, &client.config, changed, NULL) < 0);
	assert_null(pods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_then_watches, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_every_page, setup, teardown),
		cmocka_unit_test_setup_teardown(goes_on_where_a_watch_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_again_when_a_watch_breaks, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_again_when_the_version_is_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(keeps_the_pods_while_the_server_is_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(retries_when_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(hurrying_shortens_the_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(gives_up_on_malformed_and_endless_events, setup,
						teardown),
		cmocka_unit_test_setup_teardown(can_be_freed_during_a_request, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_bad_credentials, setup, teardown),
	};

	log_init("test-pods", LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
