/* Events and labels, sent to an API server on loopback. Server and client alternate in one thread.
 */
#include "config/config.h"
#include "reports/fault-domain.h"
#include "reports/min-rate-report.h"
#include "reports/pod-report.h"
#include "daemon/waiting.h"
#include "kubernetes/checkpoint.h"
#include "kubernetes/events.h"
#include "kubernetes/labels.h"
#include "kubernetes/pod-fetch.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/log.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STEPS_MAX 20000 /* of a millisecond; only a failing test waits that long */
#define SEEN_MAX  64

struct seen {
	char method[8], path[512], type[64], authorization[64], body[4096];
};

static struct {
	struct MHD_Daemon *daemon;
	uint16_t port;
	unsigned status, failures; /* number of first requests that are answered 503 */
	const char *body;
	size_t n;
	struct seen seen[SEEN_MAX];
} server;

static struct {
	struct loop loop;
	struct config_kubernetes config;
	struct api *api;
	struct events *events;
	struct labels labels;
	char kubeconfig[64], empty[1], node[8];
} client;

static struct pod *pod; /* with no containers */

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

static int set_up(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	memset(&server, 0, sizeof(server));
	memset(&client, 0, sizeof(client));
	server.status = 201;
	server.body = "{}";
	server.daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, NULL,
					 MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
	assert_non_null(server.daemon);
	server.port = MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
	strcpy(client.kubeconfig, "/tmp/weir-report-XXXXXX");
	int fd = mkstemp(client.kubeconfig);
	assert_true(fd >= 0);
	dprintf(fd,
		"clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
		"users: [{name: u, user: {token: secret}}]\n"
		"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n",
		server.port);
	close(fd);
	strcpy(client.node, "n1");
	client.config = (struct config_kubernetes){.kubeconfig = client.kubeconfig};
	log_set_level(LOG_ERROR);
	assert_int_equal(loop_init(&client.loop), 0);
	assert_int_equal(api_new(&client.api, &client.loop, &client.config), 0);
	assert_int_equal(events_new(&client.events, &client.loop, client.api, client.node), 0);
	assert_int_equal(labels_init(&client.labels, &client.loop, client.api, client.node), 0);
	pod = calloc(1, sizeof(*pod));
	assert_non_null(pod);
	strcpy(pod->uid, "u-1");
	strcpy(pod->namespace_, "ns");
	strcpy(pod->name, "web");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(pod);
	api_free(client.api);
	events_free(client.events);
	labels_deinit(&client.labels);
	loop_deinit(&client.loop);
	MHD_stop_daemon(server.daemon);
	return unlink(client.kubeconfig);
}

/* Runs until the server has seen @n requests, and 50 steps more. */
static void run_at_least(size_t n)
{
	unsigned more = 50;

	for (int i = 0; i < STEPS_MAX && more; i++) {
		MHD_run(server.daemon);
		loop_step(&client.loop, 1);
		if (server.n >= n)
			more--;
	}
	assert_true(server.n >= n);
}

static void run_until(size_t n)
{
	run_at_least(n);
	assert_int_equal(server.n, n);
}

static const char *text_of(const cJSON *json, const char *a, const char *b)
{
	const cJSON *item = cJSON_GetObjectItem(json, a);

	return cJSON_GetStringValue(b ? cJSON_GetObjectItem(item, b) : item);
}

static void expect(const cJSON *json, const char *a, const char *b, const char *expected)
{
	assert_string_equal(text_of(json, a, b), expected);
}

static void a_pods_event_has_what_kubectl_shows(void **state)
{
	(void)state;
	events_tell(client.events, pod, EVENT_WARNING, "Because", "so it \"is\" %d", 7);
	run_until(1);
	const struct seen *seen = &server.seen[0];
	assert_string_equal(seen->method, "POST");
	assert_string_equal(seen->path, "/api/v1/namespaces/ns/events");
	assert_string_equal(seen->type, "application/json");
	assert_string_equal(seen->authorization, "Bearer secret");
	cJSON *json = cJSON_Parse(seen->body);
	assert_non_null(json);
	expect(json, "kind", NULL, "Event");
	expect(json, "metadata", "namespace", "ns");
	assert_memory_equal(text_of(json, "metadata", "name"), "web.", 4);
	expect(json, "involvedObject", "kind", "Pod");
	expect(json, "involvedObject", "uid", "u-1");
	expect(json, "involvedObject", "name", "web");
	expect(json, "type", NULL, "Warning");
	expect(json, "reason", NULL, "Because");
	expect(json, "message", NULL, "so it \"is\" 7");
	expect(json, "source", "host", "n1");
	assert_int_equal(strlen(text_of(json, "lastTimestamp", NULL)), 20);
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 1);
	cJSON_Delete(json);
}

/* The event's name must not end in a dot or dash where it is cut: the API server would refuse it.
 */
static void a_long_name_is_cut_well(void **state)
{
	(void)state;
	memset(pod->name, 'a', 250);
	pod->name[198] = '.';
	pod->name[199] = '-';
	events_tell(client.events, pod, EVENT_NORMAL, "Because", "so it is");
	run_until(1);
	cJSON *json = cJSON_Parse(server.seen[0].body);
	const char *name = text_of(json, "metadata", "name");
	assert_int_equal(strcspn(name, ".-"), 198);
	assert_int_equal(name[198], '.');
	assert_int_equal(strspn(name + 199, "0123456789abcdef"), 16);
	assert_int_equal(name[199 + 16], '\0');
	expect(json, "involvedObject", "name", pod->name);
	cJSON_Delete(json);
}

static void a_nodes_event_is_in_the_default_namespace(void **state)
{
	(void)state;
	events_tell(client.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(1);
	cJSON *json = cJSON_Parse(server.seen[0].body);
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/default/events");
	expect(json, "involvedObject", "kind", "Node");
	expect(json, "involvedObject", "name", "n1");
	expect(json, "involvedObject", "uid", "n1");
	assert_null(text_of(json, "involvedObject", "namespace"));
	expect(json, "type", NULL, "Normal");
	cJSON_Delete(json);
}

/* A pod that is replaced at once takes its events with it. */
static void a_pods_controller_has_events(void **state)
{
	(void)state;
	events_tell_owner(client.events, pod, EVENT_WARNING, "Because", "of this");
	run_until(0);
	pod->owner = (struct pod_owner){"apps/v1", "ReplicaSet", "web-1", "r-1"};
	events_tell_owner(client.events, pod, EVENT_WARNING, "Because", "of this");
	events_tell_owner(client.events, pod, EVENT_WARNING, "Because", "of this");
	run_until(1);
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/ns/events");
	cJSON *json = cJSON_Parse(server.seen[0].body);
	expect(json, "involvedObject", "apiVersion", "apps/v1");
	expect(json, "involvedObject", "kind", "ReplicaSet");
	expect(json, "involvedObject", "namespace", "ns");
	expect(json, "involvedObject", "name", "web-1");
	expect(json, "involvedObject", "uid", "r-1");
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 2);
	cJSON_Delete(json);
}

static void repetitions_are_one_event(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		events_tell(client.events, pod, EVENT_WARNING, "Because", "of this");
	events_tell(client.events, pod, EVENT_WARNING, "Because", "of that");
	run_until(2);
	cJSON *json = cJSON_Parse(server.seen[0].body);
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 5);
	cJSON_Delete(json);
	/* The count follows later, not each time. */
	events_tell(client.events, pod, EVENT_WARNING, "Because", "of this");
	run_until(2);
}

static void no_more_are_sent_at_once_than_allowed(void **state)
{
	(void)state;
	for (int i = 0; i < 3 * EVENTS_BURST; i++)
		events_tell(client.events, pod, EVENT_WARNING, "Because", "of %d", i);
	run_at_least(EVENTS_BURST);
	assert_true(server.n < 2 * EVENTS_BURST);
	for (int i = 0; i < EVENTS_MAX; i++)
		events_tell(client.events, pod, EVENT_WARNING, "Because", "of more, %d", i);
	assert_true(events_dropped(client.events) > 0);
}

static void a_server_in_trouble_is_asked_again(void **state)
{
	(void)state;
	server.failures = 1;
	events_tell(client.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(2);
	assert_string_equal(server.seen[0].body, server.seen[1].body);
}

static void a_refused_event_is_dropped(void **state)
{
	(void)state;
	server.status = 403;
	events_tell(client.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(1);
	server.status = 201;
	events_tell(client.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(2);
	assert_string_equal(server.seen[1].method, "POST");
}

static void labels_are_set_and_taken_away(void **state)
{
	const cJSON *list;

	(void)state;
	server.status = 200;
	labels_set(&client.labels, LABEL_COUNT, "2");
	labels_set(&client.labels, LABEL_PRODUCT, "NVIDIA H200 (NVL)");
	labels_set(&client.labels, LABEL_MIG, "true");
	labels_set(&client.labels, LABEL_DRIVER, "");
	run_until(1);
	assert_string_equal(server.seen[0].method, "PATCH");
	assert_string_equal(server.seen[0].path, "/api/v1/nodes/n1");
	assert_string_equal(server.seen[0].type, "application/merge-patch+json");
	cJSON *json = cJSON_Parse(server.seen[0].body);
	list = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), "labels");
	expect(list, "weir.dev/gpu.count", NULL, "2");
	expect(list, "weir.dev/gpu.product", NULL, "NVIDIA-H200-NVL");
	expect(list, "weir.dev/gpu.mig", NULL, "true");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(list, "weir.dev/gpu.driver-version")));
	/* Nobody has said yet whether there is one: an earlier agent's stays. */
	assert_null(cJSON_GetObjectItem(list, "weir.dev/gpu.cuda-version"));
	cJSON_Delete(json);
	labels_set(&client.labels, LABEL_COUNT, "2"); /* nothing new */
	run_until(1);
	labels_set(&client.labels, LABEL_MIG, "");
	run_until(2);
	json = cJSON_Parse(server.seen[1].body);
	list = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), "labels");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(list, "weir.dev/gpu.mig")));
	expect(list, "weir.dev/gpu.count", NULL, "2");
	cJSON_Delete(json);
}

/* Changes of the node come together, and not faster than one a second; the first is at once. */
static void changes_of_a_node_come_together(void **state)
{
	(void)state;
	server.status = 200;
	labels_set(&client.labels, LABEL_COUNT, "2");
	run_until(1);
	for (int i = 0; i < 50; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%d", i);
		labels_set(&client.labels, LABEL_LARGEST_FREE, text);
	}
	run_until(2);
	cJSON *json = cJSON_Parse(server.seen[1].body);
	expect(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), "labels"),
	       "weir.dev/gpu.largest-free", NULL, "49");
	cJSON_Delete(json);
}

static void its_own_pod_is_labelled(void **state)
{
	struct labels own;

	(void)state;
	server.status = 200;
	assert_int_equal(labels_init_own(&own, &client.loop, client.api, "weir-system", "weir-abc"),
			 0);
	labels_set(&own, OWN_LABEL_LARGEST_FREE, "40");
	labels_set(&own, OWN_LABEL_FREE_GPUS, "0");
	run_until(1);
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/weir-system/pods/weir-abc");
	assert_string_equal(server.seen[0].body,
			    "{\"metadata\":{\"labels\":{\"weir.dev/largest-free\":\"40\","
			    "\"weir.dev/free-gpus\":\"0\"}}}");
	/* Pods wait for it: the next change follows at once. */
	labels_set(&own, OWN_LABEL_LARGEST_FREE, "90");
	run_until(2);
	labels_deinit(&own);
}

static void a_label_value_is_made_valid(void **state)
{
	static const struct {
		const char *text, *value;
	} known[] = {
		{"", ""},
		{"580.65.06", "580.65.06"},
		{" -Tesla  T4.. ", "Tesla-T4"},
		{"a/b\\c\xc3\xa9", "a-b-c"},
		{"---", ""},
		{"0123456789012345678901234567890123456789012345678901234567890123456789",
		 "012345678901234567890123456789012345678901234567890123456789012"},
	};

	(void)state;
	for (size_t i = 0; i < countof(known); i++) {
		char value[LABELS_VALUE_MAX];
		labels_clean(value, known[i].text);
		assert_string_equal(value, known[i].value);
	}
}

const struct pod *__wrap_pods_find(struct pods *pods, const char *uid);
const struct pod *__wrap_pods_find(struct pods *pods, const char *uid)
{
	(void)pods;
	snprintf(pod->uid, sizeof(pod->uid), "%s", uid);
	snprintf(pod->namespace_, sizeof(pod->namespace_), "%s",
		 strcmp(uid, "u-1") == 0 ? "ns" : "other");
	return pod;
}

void __wrap_pods_each(const struct pods *pods, void (*each)(void *, const struct pod *),
		      void *userdata);
void __wrap_pods_each(const struct pods *pods, void (*each)(void *, const struct pod *),
		      void *userdata)
{
	(void)pods;
	if (*pod->uid)
		each(userdata, pod);
}

static void expect_reason(size_t n, const char *reason)
{
	cJSON *json = cJSON_Parse(server.seen[n].body);

	expect(json, "reason", NULL, reason);
	cJSON_Delete(json);
}

static struct config config; /* of the agent: no namespace may raise */

static struct pod_report start_report(struct gpu *const *gpus)
{
	config.kubernetes.names = (struct pod_names){.priority = "w/priority",
						     .latency_slo = "w/slo",
						     .memory = "w/memory",
						     .weight = "w/weight",
						     .compute = "w/compute",
						     .memory_full = "w/full",
						     .yield = "w/yield",
						     .min_rate = "w/rate",
						     .share = "w/share"};
	config.kubernetes.node = client.node;
	pod->qos = CONTAINER_QOS_BEST_EFFORT;
	pod->least_share = pod->request = 30;
	return (struct pod_report){.config = &config,
				   .gpus = gpus,
				   .pods = (struct pods *)&config, /* never looked at */
				   .events = client.events};
}

/* A pod that is on no node yet. */
static void one_pod_is_fetched(void **state)
{
	struct pod_fetch *fetch;
	const struct pod *found;

	(void)state;
	server.status = 200;
	server.body =
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{"
		"\"uid\":\"u\",\"namespace\":\"a b\",\"name\":\"p&q\"},\"status\":{"
		"\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
		"\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"full\"}]}}]}";
	start_report(NULL);
	client.config.names = config.kubernetes.names;
	assert_int_equal(pod_fetch_new(&fetch, &client.loop, &client.config), 0);
	assert_int_equal(pod_fetch_get(fetch, "a b", "p&q", &found), POD_FETCH_RUNNING);
	run_until(1);
	assert_string_equal(server.seen[0].method, "GET");
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/a b/pods");
	assert_int_equal(pod_fetch_get(fetch, "a b", "p&q", &found), POD_FETCH_FOUND);
	assert_string_equal(found->name, "p&q");
	assert_string_equal(found->node, "");
	assert_string_equal(found->status_reason, "Unschedulable");
	assert_string_equal(found->status_message, "full");
	server.body = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
	assert_int_equal(pod_fetch_get(fetch, "c", "d", &found), POD_FETCH_RUNNING);
	run_until(2);
	assert_int_equal(pod_fetch_get(fetch, "c", "d", &found), POD_FETCH_NONE);
	server.status = 403;
	assert_int_equal(pod_fetch_get(fetch, "e", "f", &found), POD_FETCH_RUNNING);
	run_until(3);
	assert_int_equal(pod_fetch_get(fetch, "e", "f", &found), POD_FETCH_FAILED);
	assert_null(found);
	assert_int_equal(pod_fetch_get(fetch, "g", "h", &found), POD_FETCH_RUNNING);
	pod_fetch_free(fetch); /* while it runs */
}

static void a_pods_problems_are_told_once(void **state)
{
	struct gpu *none = NULL;
	struct pod_report report = start_report(&none);

	(void)state;
	pod_report_look(&report);
	run_until(0);
	strcpy(pod->priority, "high");
	pod_report_look(&report);
	pod_report_look(&report);
	run_until(1);
	expect_reason(0, "AnnotationRefused");
	strcpy(pod->weight, "many");
	strcpy(pod->priority, "low");
	pod_report_look(&report);
	run_until(2);
	expect_reason(1, "AnnotationInvalid");
	/* The same again after it was right is new, and so is the next pod of this name. */
	*pod->weight = '\0';
	pod_report_look(&report);
	strcpy(pod->weight, "more");
	pod_report_look(&report);
	run_until(3);
	*pod->uid = '\0';
	pod_report_look(&report);
	assert_null(report.all);
	pod_report_deinit(&report);
}

/* One event on the controller of all refused pods, and the pods are counted. */
static void refused_pods_are_told_to_their_controller(void **state)
{
	struct gpu *none = NULL;
	struct pod_report report = start_report(&none);

	(void)state;
	pod->owner = (struct pod_owner){"apps/v1", "ReplicaSet", "web-1", "r-1"};
	pod->phase = POD_FAILED;
	strcpy(pod->status_reason, "UnexpectedAdmissionError");
	strcpy(pod->status_message, "Allocate failed due to rpc error: code = ResourceExhausted "
				    "desc = w/share: no GPU had 50 free, which is unexpected");
	for (int i = 0; i < 3; i++) {
		snprintf(pod->uid, sizeof(pod->uid), "u-%d", i);
		pod_report_look(&report);
		pod_report_look(&report);
	}
	assert_int_equal(report.n_refused, 3);
	run_until(1);
	cJSON *json = cJSON_Parse(server.seen[0].body);
	expect(json, "involvedObject", "kind", "ReplicaSet");
	expect(json, "reason", NULL, "GPUShareRefused");
	expect(json, "message", NULL,
	       "node n1 refused a pod: no GPU had 50 free, which is unexpected");
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 3);
	cJSON_Delete(json);
	pod_report_deinit(&report);
}

static void look_again(struct loop_timer *timer)
{
	(void)timer;
}

/* A pod without room is told once, and deleted when there is room: by its uid, and only once. */
static void a_waiting_pod_is_replaced_when_there_is_room(void **state)
{
	struct waiting waiting = {
		.pods = (struct pods *)&config, .api = client.api, .events = client.events};
	struct checkpoint node = {.n = 2, .n_waiting = 1};

	(void)state;
	start_report(NULL);
	server.status = 200;
	for (size_t i = 0; i < 2; i++)
		node.gpus[i] = (struct checkpoint_gpu){.offered = {~0ull, (1ull << 36) - 1},
						       .taken = {~0ull, (1ull << 36) - 1}};
	node.waiting[0] = (struct checkpoint_waiting){.uid = "u-1", .n = 50, .own = {30, 20}};
	*pod->owner.uid = '\0';
	assert_int_equal(waiting_init(&waiting, &client.loop, look_again), 0);
	waiting_look(&waiting, &node, 1);
	waiting_look(&waiting, &node, 2);
	run_until(1);
	expect_reason(0, "GPUShareWaits");
	node.gpus[1].taken[0] = ~0ull << 30;
	waiting_look(&waiting, &node, 3); /* nobody would create it again */
	pod->owner = (struct pod_owner){"batch/v1", "Job", "web-1", "r-1"};
	node.gpus[1].taken[0] = ~0ull << 29;
	waiting_look(&waiting, &node, 4 + WAITING_LONG_NS);
	node.gpus[1].taken[0] = ~0ull << 30;
	waiting_look(&waiting, &node, 5 + WAITING_LONG_NS);
	waiting_look(&waiting, &node, 6 + WAITING_LONG_NS);
	run_until(2);
	assert_string_equal(server.seen[1].method, "DELETE");
	assert_string_equal(server.seen[1].path, "/api/v1/namespaces/ns/pods/web");
	assert_non_null(strstr(server.seen[1].body, "\"preconditions\":{\"uid\":\"u-1\"}"));
	for (int i = 0; i < STEPS_MAX && !waiting.n_replaced; i++)
		run_until(2);
	assert_int_equal(waiting.n_replaced, 1);
	assert_non_null(waiting_find(&waiting, pod));
	node.n_waiting = 0;
	waiting_look(&waiting, &node, 7 + WAITING_LONG_NS);
	assert_null(waiting_find(&waiting, pod));
	waiting_deinit(&waiting);
}

/* Another node may have room by now. */
static void a_replica_does_not_wait_for_ever(void **state)
{
	struct waiting waiting = {.pods = (struct pods *)&config, .api = client.api};
	struct checkpoint node = {.n = 2, .n_waiting = 1};

	(void)state;
	start_report(NULL);
	server.status = 200;
	pod->owner = (struct pod_owner){"apps/v1", "ReplicaSet", "web-1", "r-1"};
	node.waiting[0] = (struct checkpoint_waiting){.uid = "u-1", .n = 50, .own = {30, 20}};
	assert_int_equal(waiting_init(&waiting, &client.loop, look_again), 0);
	waiting_look(&waiting, &node, 1);
	assert_true(waiting.all->deleted_at == 0);
	waiting_look(&waiting, &node, 1 + WAITING_LONG_NS);
	assert_true(waiting.all->deleted_at > 0);
	run_until(1);
	assert_string_equal(server.seen[0].method, "DELETE");
	waiting_deinit(&waiting);
}

/* A GPU with a client of each of two pods. */
static void pods_that_share_a_server_are_told_once(void **state)
{
	struct tenant tenants[] = {{.identity = {.in_pod = true, .pod_uid = "u-1"}},
				   {.identity = {.in_pod = true, .pod_uid = "u-2"}}};
	struct client clients[] = {{.tenant = &tenants[0], .gpu_next = &clients[1]},
				   {.tenant = &tenants[1]}};
	struct gpu gpu = {.id = "GPU-1", .clients = clients};
	struct pods *some = (struct pods *)&gpu; /* never looked at */

	(void)state;
	strcpy(tenants[0].namespace_, "ns");
	strcpy(tenants[1].namespace_, "ns");
	fault_domain_look(client.events, some, &gpu, false);
	run_until(0);
	strcpy(tenants[1].namespace_, "other");
	fault_domain_look(client.events, some, &gpu, false);
	fault_domain_look(client.events, some, &gpu, false);
	run_until(2);
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/ns/events");
	assert_string_equal(server.seen[1].path, "/api/v1/namespaces/other/events");
	cJSON *json = cJSON_Parse(server.seen[1].body);
	expect(json, "reason", NULL, "SharedFaultDomain");
	expect(json, "involvedObject", "uid", "u-2");
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 1);
	cJSON_Delete(json);
	fault_domain_look(client.events, NULL, &gpu, false);
}

/* Two pods with minimum rates of 0.8 and 0.7 on a GPU. One is missed; later so for another cause.
 */
static void missed_minimum_rates_are_told_once_for_each_cause(void **state)
{
	struct tenant tenants[] = {
		{.identity = {.in_pod = true, .pod_uid = "u-1"}, .namespace_ = "ns"},
		{.identity = {.in_pod = true, .pod_uid = "u-2"}, .namespace_ = "other"}};
	struct client clients[] = {{.tenant = &tenants[0], .gpu_next = &clients[1]},
				   {.tenant = &tenants[1]}};
	struct gpu gpu = {
		.id = "GPU-1", .clients = clients, .rated = true, .rates_sum = MIN_RATE_ONE};
	struct pods *some = (struct pods *)&gpu; /* never looked at */
	const uint32_t rates[] = {800, 200};

	(void)state;
	for (unsigned i = 0; i < countof(tenants); i++) {
		clients[i].gpu = &gpu;
		tenants[i].clients = &clients[i];
		tenants[i].min_rate = rates[i];
		min_rate_set(&tenant_usage(&tenants[i], &gpu)->rate, rates[i]);
	}
	struct min_rate *rate = &tenants[0].usages->rate;
	min_rate_report_look(client.events, some, &gpu);
	run_until(0);
	rate->missed = true;
	rate->attained = 655;
	min_rate_report_look(client.events, some, &gpu);
	min_rate_report_look(client.events, some, &gpu);
	rate->hindered = MIN_RATE_ABOVE;
	min_rate_report_look(client.events, some, &gpu);
	run_until(2);
	assert_non_null(strstr(server.seen[0].body, "\"MinRateMissed\""));
	assert_non_null(strstr(server.seen[0].body, "had 0.655 of its speed alone"));
	assert_non_null(strstr(server.seen[0].body, "not 0.8"));
	assert_non_null(strstr(server.seen[1].body, "higher-level clients have work"));
	rate->missed = false;
	tenants[1].min_rate = 700;
	gpu.rates_sum = 1500;
	min_rate_report_look(client.events, some, &gpu);
	min_rate_report_look(client.events, some, &gpu);
	run_until(4);
	assert_string_equal(server.seen[2].path, "/api/v1/namespaces/ns/events");
	assert_string_equal(server.seen[3].path, "/api/v1/namespaces/other/events");
	assert_non_null(strstr(server.seen[3].body, "\"MinRatesExceedGPU\""));
	assert_non_null(strstr(server.seen[3].body, "add up to 1.5"));
	for (unsigned i = 0; i < countof(tenants); i++)
		tenant_free_usages(&tenants[i]);
}

static void works_without_events_and_labels(void **state)
{
	(void)state;
	events_tell(NULL, pod, EVENT_WARNING, "Because", "of this");
	events_tell(NULL, NULL, EVENT_WARNING, "Because", "of this");
	assert_int_equal(events_dropped(NULL), 0);
	events_free(NULL);
	api_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_pods_event_has_what_kubectl_shows),
		TEST(a_long_name_is_cut_well),
		TEST(a_nodes_event_is_in_the_default_namespace),
		TEST(a_pods_controller_has_events),
		TEST(repetitions_are_one_event),
		TEST(no_more_are_sent_at_once_than_allowed),
		TEST(a_server_in_trouble_is_asked_again),
		TEST(a_refused_event_is_dropped),
		TEST(labels_are_set_and_taken_away),
		TEST(one_pod_is_fetched),
		TEST(changes_of_a_node_come_together),
		TEST(its_own_pod_is_labelled),
		TEST(a_label_value_is_made_valid),
		TEST(a_pods_problems_are_told_once),
		TEST(refused_pods_are_told_to_their_controller),
		TEST(a_waiting_pod_is_replaced_when_there_is_room),
		TEST(a_replica_does_not_wait_for_ever),
		TEST(pods_that_share_a_server_are_told_once),
		TEST(missed_minimum_rates_are_told_once_for_each_cause),
		TEST(works_without_events_and_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
