/* What is wrong with a pod's annotations: nothing that Weir does not do is passed over in silence.
 */
#include "scheduler/pod-check.h"
#include "pod-names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#define GIB (1ull << 30)

static char trusted[] = "trusted";
static char *raise_in[] = {trusted};
static const struct config_levels levels = {
	.best_effort = 0, .burstable = 1, .guaranteed = 2, .raise = raise_in, .n_raise = 1};
static const struct pod_check_gpu gpus[] = {{10 * GIB, {.kind = MEMORY_SHARE}},
					    {20 * GIB, {.kind = MEMORY_SHARE}}};
static const struct pod_check_input input = {&levels, &pod_names, gpus, countof(gpus)};

static struct pod_problems problems;

/* A pod with 30 shares, with this value of an annotation, in a namespace that may raise or not. */
static struct pod *make_pod(enum pod_note note, const char *value, const char *namespace_)
{
	struct pod *pod = calloc(1, sizeof(*pod));

	assert_non_null(pod);
	char *const values[POD_NOTES] = {
		[NOTE_PRIORITY] = pod->priority,     [NOTE_LATENCY_SLO] = pod->latency_slo,
		[NOTE_MEMORY] = pod->memory,         [NOTE_WEIGHT] = pod->weight,
		[NOTE_COMPUTE] = pod->compute_limit, [NOTE_MEMORY_FULL] = pod->memory_full,
		[NOTE_YIELD] = pod->yield,           [NOTE_MIN_RATE] = pod->min_rate};
	snprintf(values[note], POD_NOTE_MAX, "%s", value);
	snprintf(pod->namespace_, sizeof(pod->namespace_), "%s", namespace_);
	if (!*value)
		pod->empty_notes = 1u << note;
	pod->qos = CONTAINER_QOS_BEST_EFFORT;
	pod->least_share = pod->request = 30;
	return pod;
}

#define FINE (-1)

static const struct {
	enum pod_note note;
	const char *value, *namespace_;
	int kind; /* FINE, or enum problem_kind */
	const char *message;
} values[] = {
	{NOTE_PRIORITY, "low", "default", FINE, ""},
	{NOTE_PRIORITY, "high", "trusted", FINE, ""},
	{NOTE_PRIORITY, "high", "default", PROBLEM_REFUSED,
	 "'high' refused: the pod has level low (QoS class BestEffort)"},
	{NOTE_PRIORITY, "critical", "default", PROBLEM_REFUSED, "levels.raiseNamespaces"},
	{NOTE_PRIORITY, "High", "trusted", PROBLEM_INVALID, "'High' is no level"},
	{NOTE_PRIORITY, "2", "trusted", PROBLEM_INVALID, "expected low, normal, high or critical"},
	{NOTE_PRIORITY, " high", "trusted", PROBLEM_INVALID, "' high' is no level"},
	{NOTE_PRIORITY, "", "trusted", PROBLEM_INVALID, "is empty"},
	{NOTE_PRIORITY, "hi\x1b[2Jgh", "trusted", PROBLEM_INVALID, "'hi?[2Jgh' is no level"},
	{NOTE_LATENCY_SLO, "2ms", "default", FINE, ""},
	{NOTE_LATENCY_SLO, "2", "default", PROBLEM_INVALID, "'2' is no objective"},
	{NOTE_LATENCY_SLO, "2 ms", "default", PROBLEM_INVALID, "expected a duration"},
	{NOTE_LATENCY_SLO, "10us", "default", PROBLEM_INVALID, "from 100us to 10s"},
	{NOTE_LATENCY_SLO, "1m", "default", PROBLEM_INVALID, "the pod has none"},
	{NOTE_LATENCY_SLO, "-2ms", "default", PROBLEM_INVALID, "'-2ms'"},
	{NOTE_MEMORY, "2Gi", "default", FINE, ""},
	{NOTE_MEMORY, "7Gi", "trusted", FINE, ""},
	/* 30 % of the larger GPU are just below 6 GiB. */
	{NOTE_MEMORY, "5Gi", "default", FINE, ""},
	{NOTE_MEMORY, "7Gi", "default", PROBLEM_REFUSED, "'7Gi' cut to 6142 MiB"},
	{NOTE_MEMORY, "8GB", "default", PROBLEM_INVALID, "'8GB' is no limit"},
	{NOTE_MEMORY, "1Mi", "default", PROBLEM_INVALID, "from 2Mi to 1Pi"},
	{NOTE_MEMORY, "none", "default", PROBLEM_INVALID, "the default limit applies"},
	{NOTE_MEMORY, "50%", "default", PROBLEM_INVALID, "'50%'"},
	{NOTE_WEIGHT, "30", "default", FINE, ""},
	{NOTE_WEIGHT, "90", "trusted", FINE, ""},
	{NOTE_WEIGHT, "90", "default", PROBLEM_REFUSED, "above the container's 30 shares"},
	{NOTE_WEIGHT, "0", "default", PROBLEM_INVALID, "a whole number from 1 to 100"},
	{NOTE_WEIGHT, "101", "trusted", PROBLEM_INVALID, "'101' is no weight"},
	{NOTE_WEIGHT, "1.5", "trusted", PROBLEM_INVALID, "'1.5' is no weight"},
	{NOTE_WEIGHT, "0000000000000000000000000000...", "default", PROBLEM_INVALID, "..."},
	{NOTE_MEMORY_FULL, "wait", "default", FINE, ""},
	{NOTE_MEMORY_FULL, "fail", "default", FINE, ""},
	{NOTE_MEMORY_FULL, "Wait", "default", PROBLEM_INVALID, "expected fail or wait"},
	{NOTE_MIN_RATE, "0.3", "default", FINE, ""},
	{NOTE_MIN_RATE, "0.8", "trusted", FINE, ""},
	{NOTE_MIN_RATE, "0.301", "default", PROBLEM_REFUSED, "holds against lower levels only"},
	{NOTE_MIN_RATE, "1", "default", PROBLEM_REFUSED, "above the container's 30 shares"},
	{NOTE_MIN_RATE, "0", "default", PROBLEM_INVALID, "'0' is no minimum rate"},
	{NOTE_MIN_RATE, "1.1", "trusted", PROBLEM_INVALID, "above 0 and at most 1"},
	{NOTE_MIN_RATE, "80%", "trusted", PROBLEM_INVALID, "the pod has none"},
	{NOTE_MIN_RATE, "", "default", PROBLEM_INVALID, "is empty"},
	{NOTE_YIELD, "auto", "default", FINE, ""},
	{NOTE_YIELD, "whole", "default", FINE, ""},
	{NOTE_YIELD, "needed", "default", FINE, ""},
	{NOTE_YIELD, "needed+25%", "default", FINE, ""},
	{NOTE_YIELD, "16", "default", FINE, ""},
	{NOTE_YIELD, "needed+101%", "default", PROBLEM_INVALID, "'needed+101%' is not understood"},
	{NOTE_YIELD, "all", "trusted", PROBLEM_INVALID, "needed+N% with N from 0 to 100"},
	{NOTE_YIELD, "", "default", PROBLEM_INVALID, "is empty"},
	{NOTE_COMPUTE, "1", "default", FINE, ""},
	{NOTE_COMPUTE, "100", "default", FINE, ""},
	{NOTE_COMPUTE, "0", "default", PROBLEM_INVALID, "a whole number from 1 to 100"},
	{NOTE_COMPUTE, "101", "default", PROBLEM_INVALID, "'101' is no limit"},
	{NOTE_COMPUTE, "30%", "trusted", PROBLEM_INVALID, "the pod has none"},
	{NOTE_COMPUTE, "", "trusted", PROBLEM_INVALID, "is empty"},
};

static void judges_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < countof(values); i++) {
		struct pod *pod = make_pod(values[i].note, values[i].value, values[i].namespace_);
		pod_check(&problems, &input, pod);
		free(pod);
		assert_int_equal(problems.n, values[i].kind != FINE);
		if (values[i].kind == FINE)
			continue;
		assert_int_equal(problems.all[0].kind, values[i].kind);
		assert_string_equal(problems.all[0].subject,
				    pod_note_name(&pod_names, values[i].note));
		assert_non_null(strstr(problems.all[0].message, values[i].message));
	}
}

static void tells_what_has_no_effect(void **state)
{
	struct pod *pod = make_pod(NOTE_PRIORITY, "high", "trusted");

	(void)state;
	pod->least_share = 0;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 1);
	assert_int_equal(problems.all[0].kind, PROBLEM_UNUSED);
	assert_non_null(strstr(problems.all[0].message, "no container has a limit of"));
	pod->least_share = 100;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 1);
	assert_non_null(strstr(problems.all[0].message, "whole GPUs"));
	pod->least_share = 30;
	pod->labels_like_note = 1u << NOTE_MEMORY;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 1);
	assert_string_equal(problems.all[0].subject, "weir.dev/memory");
	assert_non_null(strstr(problems.all[0].message, "is a label"));
	free(pod);
}

/* A claim's share is known when it is prepared; its memory is then the limit that a pod may lower.
 */
static void waits_for_claims(void **state)
{
	struct pod *pod = make_pod(NOTE_PRIORITY, "low", "team");

	(void)state;
	pod->least_share = pod->request = 0;
	pod->has_claims = true;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 0);
	free(pod);
}

/* The memory of a claim takes the place of the share's: a pod may ask for less, not for more. */
static void compares_memory_with_the_claim(void **state)
{
	struct pod *small = make_pod(NOTE_MEMORY, "4Gi", "team");
	struct pod *pod = realloc(small, sizeof(*pod) + sizeof(pod->containers[0]));

	(void)state;
	assert_non_null(pod);
	pod->n_containers = 1;
	pod->containers[0] = (struct pod_container){.share = 30, .claimed = 5 * GIB};
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 0);
	pod->containers[0].claimed = 2 * GIB;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 1);
	assert_non_null(strstr(problems.all[0].message, "cut to 2048 MiB"));
	free(pod);
}

static void knows_misspelt_names(void **state)
{
	struct pod *pod = make_pod(NOTE_PRIORITY, "low", "default");

	(void)state;
	strcpy(pod->unknown[0], "weir.dev/prio");
	strcpy(pod->unknown[1], "weir.dev/latencySlo");
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 2);
	assert_int_equal(problems.all[1].kind, PROBLEM_INVALID);
	assert_string_equal(problems.all[1].subject, "weir.dev/latencySlo");
	assert_non_null(strstr(problems.all[1].message, "expected weir.dev/priority, "));
	free(pod);
}

/* A pod that did not fit has the device plugin's words. */
static void repeats_a_refusal(void **state)
{
	struct pod *pod = make_pod(NOTE_PRIORITY, "low", "default");

	(void)state;
	strcpy(pod->status_reason, "UnexpectedAdmissionError");
	strcpy(pod->status_message, "Allocate failed: weir.dev/gpu-share: 150 shares do not fit");
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 0); /* it runs */
	pod->phase = POD_FAILED;
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, 1);
	assert_string_equal(problems.all[0].subject, "weir.dev/gpu-share");
	assert_string_equal(problems.all[0].message, "150 shares do not fit");
	strcpy(pod->status_message, "Allocate failed: example.org/fpga: none");
	assert_null(pod_refusal(pod, pod_names.share));
	strcpy(pod->status_reason, "OutOfweir.dev/gpu-share");
	assert_string_equal(pod_refusal(pod, pod_names.share), pod->status_message);
	strcpy(pod->status_reason, "Evicted");
	assert_null(pod_refusal(pod, pod_names.share));
	free(pod);
}

/* Everything at once has room. */
static void has_room_for_all(void **state)
{
	struct pod *pod = make_pod(NOTE_PRIORITY, "x", "default");

	(void)state;
	strcpy(pod->latency_slo, "x");
	strcpy(pod->memory, "x");
	strcpy(pod->weight, "x");
	strcpy(pod->compute_limit, "x");
	strcpy(pod->memory_full, "x");
	strcpy(pod->yield, "x");
	strcpy(pod->min_rate, "x");
	pod->labels_like_note = (1u << POD_NOTES) - 1;
	for (size_t i = 0; i < POD_UNKNOWN_MAX; i++)
		memset(pod->unknown[i], 'x', sizeof(pod->unknown[i]) - 1);
	pod->phase = POD_FAILED;
	strcpy(pod->status_reason, "OutOfweir.dev/gpu-share");
	memset(pod->status_message, 'x', sizeof(pod->status_message) - 1);
	memset(pod->namespace_, 'x', sizeof(pod->namespace_) - 1);
	pod_check(&problems, &input, pod);
	assert_int_equal(problems.n, POD_PROBLEMS_MAX);
	free(pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_values),
		cmocka_unit_test(tells_what_has_no_effect),
		cmocka_unit_test(knows_misspelt_names),
		cmocka_unit_test(repeats_a_refusal),
		cmocka_unit_test(has_room_for_all),
		cmocka_unit_test(waits_for_claims),
		cmocka_unit_test(compares_memory_with_the_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
