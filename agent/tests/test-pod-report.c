/* What the agent says of pods to the API server: problems, refusals, waiting, shared servers,
 * rates. */
#include "pod-names.h"
#include "report-fixture.h"

#include "daemon/waiting.h"
#include "kubernetes/checkpoint.h"
#include "kubernetes/pod-fetch.h"
#include "reports/fault-domain.h"
#include "reports/min-rate-report.h"
#include "reports/pod-report.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

#include <stdio.h>
#include <string.h>

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
	config.kubernetes.names = pod_names;
	config.kubernetes.node = reporter.node;
	pod->qos = CONTAINER_QOS_BEST_EFFORT;
	pod->least_share = pod->request = 30;
	return (struct pod_report){.config = &config,
				   .gpus = gpus,
				   .pods = (struct pods *)&config, /* never looked at */
				   .events = reporter.events};
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
	reporter.config.names = config.kubernetes.names;
	assert_int_equal(pod_fetch_new(&fetch, &reporter.loop, &reporter.config), 0);
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
	strcpy(pod->status_message,
	       "Allocate failed due to rpc error: code = ResourceExhausted "
	       "desc = weir.dev/gpu-share: no GPU had 50 free, which is unexpected");
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
		.pods = (struct pods *)&config, .api = reporter.api, .events = reporter.events};
	struct checkpoint node = {.n = 2, .n_waiting = 1};

	(void)state;
	start_report(NULL);
	server.status = 200;
	for (size_t i = 0; i < 2; i++)
		node.gpus[i] = (struct checkpoint_gpu){.offered = {~0ull, (1ull << 36) - 1},
						       .taken = {~0ull, (1ull << 36) - 1}};
	node.waiting[0] = (struct checkpoint_waiting){.uid = "u-1", .n = 50, .own = {30, 20}};
	*pod->owner.uid = '\0';
	assert_int_equal(waiting_init(&waiting, &reporter.loop, look_again), 0);
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
	struct waiting waiting = {.pods = (struct pods *)&config, .api = reporter.api};
	struct checkpoint node = {.n = 2, .n_waiting = 1};

	(void)state;
	start_report(NULL);
	server.status = 200;
	pod->owner = (struct pod_owner){"apps/v1", "ReplicaSet", "web-1", "r-1"};
	node.waiting[0] = (struct checkpoint_waiting){.uid = "u-1", .n = 50, .own = {30, 20}};
	assert_int_equal(waiting_init(&waiting, &reporter.loop, look_again), 0);
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
	fault_domain_look(reporter.events, some, &gpu, false);
	run_until(0);
	strcpy(tenants[1].namespace_, "other");
	fault_domain_look(reporter.events, some, &gpu, false);
	fault_domain_look(reporter.events, some, &gpu, false);
	run_until(2);
	assert_string_equal(server.seen[0].path, "/api/v1/namespaces/ns/events");
	assert_string_equal(server.seen[1].path, "/api/v1/namespaces/other/events");
	cJSON *json = cJSON_Parse(server.seen[1].body);
	expect(json, "reason", NULL, "SharedFaultDomain");
	expect(json, "involvedObject", "uid", "u-2");
	assert_int_equal(cJSON_GetObjectItem(json, "count")->valueint, 1);
	cJSON_Delete(json);
	fault_domain_look(reporter.events, NULL, &gpu, false);
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
	min_rate_report_look(reporter.events, some, &gpu);
	run_until(0);
	rate->missed = true;
	rate->attained = 655;
	min_rate_report_look(reporter.events, some, &gpu);
	min_rate_report_look(reporter.events, some, &gpu);
	rate->hindered = MIN_RATE_ABOVE;
	min_rate_report_look(reporter.events, some, &gpu);
	run_until(2);
	assert_non_null(strstr(server.seen[0].body, "\"MinRateMissed\""));
	assert_non_null(strstr(server.seen[0].body, "had 0.655 of its speed alone"));
	assert_non_null(strstr(server.seen[0].body, "not 0.8"));
	assert_non_null(strstr(server.seen[1].body, "higher-level clients have work"));
	rate->missed = false;
	tenants[1].min_rate = 700;
	gpu.rates_sum = 1500;
	min_rate_report_look(reporter.events, some, &gpu);
	min_rate_report_look(reporter.events, some, &gpu);
	run_until(4);
	assert_string_equal(server.seen[2].path, "/api/v1/namespaces/ns/events");
	assert_string_equal(server.seen[3].path, "/api/v1/namespaces/other/events");
	assert_non_null(strstr(server.seen[3].body, "\"MinRatesExceedGPU\""));
	assert_non_null(strstr(server.seen[3].body, "add up to 1.5"));
	for (unsigned i = 0; i < countof(tenants); i++)
		tenant_free_usages(&tenants[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPORT_TEST(one_pod_is_fetched),
		REPORT_TEST(a_pods_problems_are_told_once),
		REPORT_TEST(refused_pods_are_told_to_their_controller),
		REPORT_TEST(a_waiting_pod_is_replaced_when_there_is_room),
		REPORT_TEST(a_replica_does_not_wait_for_ever),
		REPORT_TEST(pods_that_share_a_server_are_told_once),
		REPORT_TEST(missed_minimum_rates_are_told_once_for_each_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
