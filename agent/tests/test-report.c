/* Events and labels, sent to an API server on loopback. */
#include "report-fixture.h"

#include "weir/base.h"

#include <stdio.h>
#include <string.h>

static void a_pods_event_has_what_kubectl_shows(void **state)
{
	(void)state;
	events_tell(reporter.events, pod, EVENT_WARNING, "Because", "so it \"is\" %d", 7);
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
	events_tell(reporter.events, pod, EVENT_NORMAL, "Because", "so it is");
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
	events_tell(reporter.events, NULL, EVENT_NORMAL, "Fine", "again");
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
	events_tell_owner(reporter.events, pod, EVENT_WARNING, "Because", "of this");
	run_until(0);
	pod->owner = (struct pod_owner){"apps/v1", "ReplicaSet", "web-1", "r-1"};
	events_tell_owner(reporter.events, pod, EVENT_WARNING, "Because", "of this");
	events_tell_owner(reporter.events, pod, EVENT_WARNING, "Because", "of this");
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
		events_tell(reporter.events, pod, EVENT_WARNING, "Because", "of this");
	events_tell(reporter.events, pod, EVENT_WARNING, "Because", "of that");
	run_until(2);
	cJSON *json = cJSON_Parse(server.seen[0].body);
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 5);
	cJSON_Delete(json);
	/* The count follows later, not each time. */
	events_tell(reporter.events, pod, EVENT_WARNING, "Because", "of this");
	run_until(2);
}

static void no_more_are_sent_at_once_than_allowed(void **state)
{
	(void)state;
	for (int i = 0; i < 3 * EVENTS_BURST; i++)
		events_tell(reporter.events, pod, EVENT_WARNING, "Because", "of %d", i);
	run_at_least(EVENTS_BURST);
	assert_true(server.n < 2 * EVENTS_BURST);
	for (int i = 0; i < EVENTS_MAX; i++)
		events_tell(reporter.events, pod, EVENT_WARNING, "Because", "of more, %d", i);
	assert_true(events_dropped(reporter.events) > 0);
}

static void a_server_in_trouble_is_asked_again(void **state)
{
	(void)state;
	server.failures = 1;
	events_tell(reporter.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(2);
	assert_string_equal(server.seen[0].body, server.seen[1].body);
}

static void a_refused_event_is_dropped(void **state)
{
	(void)state;
	server.status = 403;
	events_tell(reporter.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(1);
	server.status = 201;
	events_tell(reporter.events, NULL, EVENT_NORMAL, "Fine", "again");
	run_until(2);
	assert_string_equal(server.seen[1].method, "POST");
}

static void labels_are_set_and_taken_away(void **state)
{
	const cJSON *list;

	(void)state;
	server.status = 200;
	labels_set(&reporter.labels, LABEL_COUNT, "2");
	labels_set(&reporter.labels, LABEL_PRODUCT, "NVIDIA H200 (NVL)");
	labels_set(&reporter.labels, LABEL_MIG, "true");
	labels_set(&reporter.labels, LABEL_DRIVER, "");
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
	labels_set(&reporter.labels, LABEL_COUNT, "2"); /* nothing new */
	run_until(1);
	labels_set(&reporter.labels, LABEL_MIG, "");
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
	labels_set(&reporter.labels, LABEL_COUNT, "2");
	run_until(1);
	for (int i = 0; i < 50; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%d", i);
		labels_set(&reporter.labels, LABEL_LARGEST_FREE, text);
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
	assert_int_equal(
		labels_init_own(&own, &reporter.loop, reporter.api, "weir-system", "weir-abc"), 0);
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
	const struct CMUnitTest tests[] = {
		REPORT_TEST(a_pods_event_has_what_kubectl_shows),
		REPORT_TEST(a_long_name_is_cut_well),
		REPORT_TEST(a_nodes_event_is_in_the_default_namespace),
		REPORT_TEST(a_pods_controller_has_events),
		REPORT_TEST(repetitions_are_one_event),
		REPORT_TEST(no_more_are_sent_at_once_than_allowed),
		REPORT_TEST(a_server_in_trouble_is_asked_again),
		REPORT_TEST(a_refused_event_is_dropped),
		REPORT_TEST(labels_are_set_and_taken_away),
		REPORT_TEST(changes_of_a_node_come_together),
		REPORT_TEST(its_own_pod_is_labelled),
		REPORT_TEST(a_label_value_is_made_valid),
		REPORT_TEST(works_without_events_and_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
