/* Parsing the API server's JSON. */
#include "kubernetes/pod-claims.h"
#include "kubernetes/podlist.h"
#include "pod-names.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POD                                                                                    \
	"{\"metadata\":{\"uid\":\"u1\",\"namespace\":\"team\",\"name\":\"web\","               \
	"\"resourceVersion\":\"12\",\"annotations\":{\"weir.dev/priority\":\"high\","          \
	"\"weir.dev/latency-slo\":\"2ms\",\"weir.dev/memory\":\"8Gi\",\"weir.dev/"             \
	"weight\":\"7\",\"weir.dev/compute-limit\":\"30\",\"weir.dev/"                         \
	"yield\":\"needed+25%\",\"weir.dev/min-rate\":\"0.8\"}},"                              \
	"\"spec\":{\"priorityClassName\":\"gold\",\"containers\":[{\"name\":\"main\","         \
	"\"resources\":{\"limits\":{\"weir.dev/gpu-share\":\"40\"}}},{\"name\":\"waiting\"}]," \
	"\"initContainers\":[{\"name\":\"first\","                                             \
	"\"resources\":{\"limits\":{\"weir.dev/gpu-share\":\"300\"}}}]},"                      \
	"\"status\":{\"qosClass\":\"Burstable\","                                              \
	"\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://aaa\"},"     \
	"{\"name\":\"waiting\"}],"                                                             \
	"\"initContainerStatuses\":[{\"name\":\"first\",\"containerID\":\"cri-o://bbb\"}]}}"

#define STATIC_POD                                                                              \
	"{\"metadata\":{\"uid\":\"u2\",\"namespace\":\"kube-system\",\"name\":\"static-node\"," \
	"\"annotations\":{\"kubernetes.io/config.hash\":\"abc\","                               \
	"\"kubernetes.io/config.mirror\":\"abc\"}}}"

#define CLAIM_POD                                                                               \
	"{\"metadata\":{\"uid\":\"u3\",\"namespace\":\"team\",\"name\":\"claims\"},"            \
	"\"spec\":{\"resourceClaims\":[{\"name\":\"own\",\"resourceClaimTemplateName\":\"t\"}," \
	"{\"name\":\"named\",\"resourceClaimName\":\"shared\"},"                                \
	"{\"name\":\"late\",\"resourceClaimTemplateName\":\"t\"}],"                             \
	"\"containers\":[{\"name\":\"main\",\"resources\":{\"claims\":[{\"name\":\"late\"},"    \
	"{\"name\":\"own\"},{\"name\":\"named\",\"request\":\"gpu\"},{\"name\":\"none\"}]}},"   \
	"{\"name\":\"other\"}]},"                                                               \
	"\"status\":{\"resourceClaimStatuses\":[{\"name\":\"own\",\"resourceClaimName\":\"own-" \
	"x7\"},"                                                                                \
	"{\"name\":\"late\"}],\"containerStatuses\":[{\"name\":\"main\","                       \
	"\"containerID\":\"containerd://aaa\"},"                                                \
	"{\"name\":\"other\",\"containerID\":\"containerd://bbb\"}]}}"

/* Claims to be the static pod abc, but is not a mirror pod. */
#define PRETENDER                                                              \
	"{\"metadata\":{\"uid\":\"u3\",\"namespace\":\"evil\",\"name\":\"p\"," \
	"\"annotations\":{\"kubernetes.io/config.hash\":\"abc\"}}}"

static int list(struct podlist *out, const char *text)
{
	return podlist_parse(out, text, strlen(text), &pod_names, 4);
}

static int event(struct podlist_event *out, const char *text)
{
	return podlist_parse_event(out, text, strlen(text), &pod_names);
}

static void reads_a_pod(void **state)
{
	struct podlist l;

	(void)state;
	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"99\",\"continue\":\"t\"},"
				  "\"items\":[" POD "]}"),
			 0);
	assert_string_equal(l.resource_version, "99");
	assert_string_equal(l.next, "t");
	assert_int_equal(l.n, 1);
	const struct pod *pod = l.pods[0];
	assert_string_equal(pod->uid, "u1");
	assert_string_equal(pod->cgroup_uid, "u1");
	assert_string_equal(pod->namespace_, "team");
	assert_string_equal(pod->name, "web");
	assert_string_equal(pod->priority_class, "gold");
	assert_string_equal(pod->priority, "high");
	assert_int_equal(pod->qos, CONTAINER_QOS_BURSTABLE);
	assert_string_equal(pod->latency_slo, "2ms");
	assert_string_equal(pod->memory, "8Gi");
	assert_string_equal(pod->weight, "7");
	assert_string_equal(pod->compute_limit, "30");
	assert_string_equal(pod->yield, "needed+25%");
	assert_string_equal(pod->min_rate, "0.8");
	assert_int_equal(pod->least_share, 40);
	assert_string_equal(pod_container(pod, "aaa")->name, "main");
	assert_int_equal(pod_container(pod, "aaa")->share, 40);
	assert_int_equal(pod_container(pod, "bbb")->share, 100);
	assert_string_equal(pod_container(pod, "bbb")->name, "first");
	assert_null(pod_container(pod, "ccc"));
	assert_int_equal(pod->request, 300);
	assert_int_equal(pod->phase, POD_ALIVE);
	assert_string_equal(pod->owner.uid, "");
	assert_string_equal(pod->unknown[0], "");
	assert_int_equal(pod->empty_notes | pod->labels_like_note, 0);
	podlist_deinit(&l);
}

#define ODD                                                                                       \
	"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"uid\":\"u\",\"namespace\":\"n\","        \
	"\"name\":\"p\",\"labels\":{\"weir.dev/memory\":\"8Gi\",\"app\":\"x\"},"                  \
	"\"ownerReferences\":[{\"kind\":\"Other\"},{\"controller\":true,"                         \
	"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-1\",\"uid\":\"r\"}],"  \
	"\"annotations\":{\"weir.dev/priority\":\"\",\"weir.dev/prio\":\"high\",\"a.b/c\":\"d\"," \
	"\"weir.dev/weight\":\"000000000000000000000000000000000007\"}},"                         \
	"\"status\":{\"phase\":\"Failed\",\"reason\":\"Because\",\"message\":\"of this\"}}}"

/* What cannot be right is kept, so that somebody can be told. */
static void keeps_what_is_odd(void **state)
{
	struct podlist_event e;

	(void)state;
	assert_int_equal(event(&e, ODD), 0);
	const struct pod *pod = e.pod;
	assert_int_equal(pod->empty_notes, 1u << NOTE_PRIORITY);
	assert_int_equal(pod->labels_like_note, 1u << NOTE_MEMORY);
	assert_string_equal(pod->memory, "");
	assert_string_equal(pod->unknown[0], "weir.dev/prio");
	assert_string_equal(pod->unknown[1], "");
	/* Cut, it would be another number. */
	assert_string_equal(pod->weight, "0000000000000000000000000000...");
	assert_int_equal(pod->phase, POD_FAILED);
	assert_string_equal(pod->status_reason, "Because");
	assert_string_equal(pod->status_message, "of this");
	assert_string_equal(pod->owner.api_version, "apps/v1");
	assert_string_equal(pod->owner.kind, "ReplicaSet");
	assert_string_equal(pod->owner.name, "web-1");
	assert_string_equal(pod->owner.uid, "r");
	podlist_event_deinit(&e);
}

/* The API server writes quantities in their shortest form. */
static void reads_shares(void **state)
{
	static const struct {
		const char *text;
		uint32_t share;
	} shares[] = {
		{"1", 1},     {"99", 99},  {"100", 100}, {"800", 100}, {"1k", 100},
		{"16k", 100}, {"1M", 100}, {"0", 0},     {"", 0},      {"k", 0},
		{"500m", 0},  {"5x", 0},   {"1kk", 0},   {"-5", 0},
	};
	char text[512];
	struct podlist l;

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		snprintf(text, sizeof(text),
			 "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{"
			 "\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"p\"},\"spec\":{"
			 "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
			 "\"weir.dev/gpu-share\":\"%s\"}}}]}}]}",
			 shares[i].text);
		assert_int_equal(list(&l, text), 0);
		assert_int_equal(l.pods[0]->least_share, shares[i].share);
		podlist_deinit(&l);
	}
}

static void knows_static_pods_by_their_hash(void **state)
{
	struct podlist l;

	(void)state;
	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"},"
				  "\"items\":[" STATIC_POD "," PRETENDER "]}"),
			 0);
	assert_string_equal(l.pods[0]->cgroup_uid, "abc");
	assert_string_equal(l.pods[1]->cgroup_uid, "u3");
	podlist_deinit(&l);
}

static void skips_malformed_pods(void **state)
{
	struct podlist l;

	(void)state;
	assert_int_equal(
		list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[1,{},"
			 "{\"metadata\":{\"uid\":5,\"namespace\":\"a\",\"name\":\"b\"}}," POD "]}"),
		0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.skipped, 3);
	podlist_deinit(&l);

	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}"), 0);
	assert_int_equal(l.n, 0);
	podlist_deinit(&l);
}

static void refuses_malformed_lists(void **state)
{
	struct podlist l;

	(void)state;
	assert_int_equal(list(&l, ""), -EINVAL);
	assert_int_equal(list(&l, "{\"items\":[]}"), -EINVAL);
	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"}}"), -EINVAL);
	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" POD),
			 -EINVAL);
	assert_int_equal(list(&l, "{\"metadata\":{\"resourceVersion\":\"1\"},"
				  "\"items\":[{},{},{},{},{}]}"),
			 -E2BIG);
}

static void reads_events(void **state)
{
	struct podlist_event e;

	(void)state;
	assert_int_equal(event(&e, "{\"type\":\"MODIFIED\",\"object\":" POD "}"), 0);
	assert_int_equal(e.type, PODLIST_EVENT_CHANGED);
	assert_string_equal(e.resource_version, "12");
	assert_string_equal(e.pod->uid, "u1");
	podlist_event_deinit(&e);

	assert_int_equal(event(&e, "{\"type\":\"DELETED\",\"object\":" POD "}"), 0);
	assert_int_equal(e.type, PODLIST_EVENT_DELETED);
	podlist_event_deinit(&e);

	assert_int_equal(event(&e, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":"
				   "{\"resourceVersion\":\"77\"}}}"),
			 0);
	assert_int_equal(e.type, PODLIST_EVENT_BOOKMARK);
	assert_string_equal(e.resource_version, "77");
	assert_null(e.pod);

	assert_int_equal(event(&e, "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":"
				   "\"too old resource version\"}}"),
			 0);
	assert_int_equal(e.type, PODLIST_EVENT_ERROR);
	assert_int_equal(e.code, 410);
	assert_string_equal(e.message, "too old resource version");

	assert_int_equal(event(&e, "{\"type\":\"ADDED\",\"object\":{}}"), 0);
	assert_int_equal(e.type, PODLIST_EVENT_IGNORED);
	assert_int_equal(event(&e, "{\"type\":\"LATER\",\"object\":{}}"), 0);
	assert_int_equal(e.type, PODLIST_EVENT_IGNORED);
	assert_int_equal(event(&e, "{\"type\":3,\"object\":{}}"), -EINVAL);
	assert_int_equal(event(&e, "{\"type\":\"ADDED\"}"), -EINVAL);
	assert_int_equal(event(&e, "[]"), -EINVAL);
}

static void compares_pods(void **state)
{
	struct podlist_event a, b;

	(void)state;
	assert_int_equal(event(&a, "{\"type\":\"ADDED\",\"object\":" POD "}"), 0);
	assert_int_equal(event(&b, "{\"type\":\"MODIFIED\",\"object\":" POD "}"), 0);
	assert_true(pod_equal(a.pod, b.pod));
	strcpy(b.pod->priority, "low");
	assert_false(pod_equal(a.pod, b.pod));
	podlist_event_deinit(&a);
	podlist_event_deinit(&b);
}

static void reads_which_claims_a_container_uses(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" CLAIM_POD "]}";
	struct podlist list;

	(void)state;
	assert_int_equal(podlist_parse(&list, text, strlen(text), &pod_names, 10), 0);
	const struct pod_container *main_ = pod_container(list.pods[0], "aaa");
	assert_string_equal(main_->claims[0], "own-x7");
	assert_string_equal(main_->claims[1], "shared");
	assert_string_equal(main_->claims[2], "");
	assert_string_equal(pod_container(list.pods[0], "bbb")->claims[0], "");
	podlist_deinit(&list);
}

static struct claim *claim(const char *name, uint32_t shares, uint64_t memory)
{
	struct claim *new = calloc(1, sizeof(*new));

	assert_non_null(new);
	snprintf(new->namespace_, sizeof(new->namespace_), "team");
	snprintf(new->name, sizeof(new->name), "%s", name);
	new->n = 1;
	new->devices[0].shares = shares;
	new->devices[0].memory = memory;
	return new;
}

static void gives_containers_what_they_claim(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" CLAIM_POD "]}";
	struct podlist list;
	struct claims claims = {0};

	(void)state;
	assert_int_equal(podlist_parse(&list, text, strlen(text), &pod_names, 10), 0);
	struct pod *pod = list.pods[0];
	assert_false(pod_claims_apply(pod, &claims));
	assert_int_equal(claims_add(&claims, claim("stranger", 1, 1)), 0);
	assert_int_equal(claims_add(&claims, claim("own-x7", 30, 4096)), 0);
	assert_true(pod_claims_apply(pod, &claims));
	assert_false(pod_claims_apply(pod, &claims));
	assert_int_equal(pod_container(pod, "aaa")->share, 30);
	assert_int_equal(pod_container(pod, "aaa")->claimed, 4096);
	assert_int_equal(pod_container(pod, "bbb")->share, 0);
	assert_int_equal(pod->least_share, 30);
	assert_int_equal(pod_claimed(pod), 4096);
	/* The smallest of several. */
	assert_int_equal(claims_add(&claims, claim("shared", 10, 8192)), 0);
	assert_true(pod_claims_apply(pod, &claims));
	assert_int_equal(pod_container(pod, "aaa")->share, 10);
	assert_int_equal(pod_container(pod, "aaa")->claimed, 4096);
	claims_deinit(&claims);
	podlist_deinit(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_which_claims_a_container_uses),
		cmocka_unit_test(gives_containers_what_they_claim),
		cmocka_unit_test(reads_a_pod),
		cmocka_unit_test(keeps_what_is_odd),
		cmocka_unit_test(reads_shares),
		cmocka_unit_test(knows_static_pods_by_their_hash),
		cmocka_unit_test(skips_malformed_pods),
		cmocka_unit_test(refuses_malformed_lists),
		cmocka_unit_test(reads_events),
		cmocka_unit_test(compares_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
