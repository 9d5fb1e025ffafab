#include "reports/pod-report.h"

#include <inttypes.h>
#include <string.h>

#include "common/hash.h"
#include "common/metric.h"
#include "config/config.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/gpu/gpus.h"

#include "weir/base.h"
#include "weir/log.h"

void pod_report_check(const struct pod_report *report, struct pod_problems *out,
		      const struct pod *pod)
{
	struct pod_check_gpu gpus[POD_REPORT_GPUS_MAX];
	struct pod_check_input input = {.levels = &report->config->levels,
					.names = &report->config->kubernetes.names,
					.gpus = gpus};

	for (const struct gpu *gpu = *report->gpus; gpu && input.n_gpus < POD_REPORT_GPUS_MAX;
	     gpu = gpu->hh.next)
		gpus[input.n_gpus++] = (struct pod_check_gpu){
			gpu->memory, gpu_settings(report->config, gpu).memory};
	pod_check(out, &input, pod);
}

/* FNV-1a of all problems; 0: there are none. */
static uint64_t hash_problems(const struct pod_problems *problems)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < problems->n; i++) {
		const struct pod_problem *problem = &problems->all[i];
		for (const char *c = problem->subject; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
		for (const char *c = problem->message; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	}
	return problems->n ? hash : 0;
}

/* A controller replaces a refused pod at once, and only its own event outlives the pods. */
static void tell_refusal(struct pod_report *report, const struct pod *pod,
			 const struct pod_problem *problem)
{
	if (*pod->owner.uid)
		events_tell_owner(report->events, pod, EVENT_WARNING, "GPUShareRefused",
				  "node %s refused a pod: %s", report->config->kubernetes.node,
				  problem->message);
	else
		events_tell(report->events, pod, EVENT_WARNING, "GPUShareRefused", "%s",
			    problem->message);
}

static bool is_request(const struct pod_report *report, const struct pod_problem *problem)
{
	return strcmp(problem->subject, report->config->kubernetes.names.share) == 0;
}

static void tell_problem(struct pod_report *report, struct told *told, const struct pod *pod,
			 const struct pod_problem *problem)
{
	static const char *const reasons[PROBLEM_KINDS] = {
		[PROBLEM_REFUSED] = "AnnotationRefused",
		[PROBLEM_INVALID] = "AnnotationInvalid",
		[PROBLEM_UNUSED] = "AnnotationUnused",
	};

	if (is_request(report, problem)) {
		report->n_refused += !told->refused;
		told->refused = true;
		tell_refusal(report, pod, problem);
		return;
	}
	log_limited(LOG_WARNING, 1, "namespace '%s', pod '%s': %s %s", pod->namespace_, pod->name,
		    problem->subject, problem->message);
	events_tell(report->events, pod,
		    problem->kind == PROBLEM_UNUSED ? EVENT_NORMAL : EVENT_WARNING,
		    reasons[problem->kind], "%s %s", problem->subject, problem->message);
}

static struct told *find_or_add(struct pod_report *report, const struct pod *pod)
{
	struct told *told;

	HASH_FIND_STR(report->all, pod->uid, told);
	if (told)
		return told;
	told = calloc(1, sizeof(*told));
	if (!told)
		return NULL;
	memcpy(told->uid, pod->uid, sizeof(told->uid));
	HASH_ADD_STR(report->all, uid, told);
	return told;
}

static void look_at(void *userdata, const struct pod *pod)
{
	struct pod_report *report = userdata;
	struct pod_problems problems;
	struct told *told;

	pod_report_check(report, &problems, pod);
	uint64_t hash = hash_problems(&problems);
	HASH_FIND_STR(report->all, pod->uid, told);
	if (!told && hash)
		told = find_or_add(report, pod);
	if (!told)
		return;
	told->generation = report->generation;
	if (told->hash == hash)
		return;
	told->hash = hash;
	for (size_t i = 0; i < problems.n; i++)
		tell_problem(report, told, pod, &problems.all[i]);
}

static void forget(struct pod_report *report, struct told *told)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is in no list any more */
	HASH_DEL(report->all, told);
	free(told);
}

void pod_report_look(struct pod_report *report)
{
	struct told *told, *next;

	if (!report->pods)
		return;
	report->generation++;
	pods_each(report->pods, look_at, report);
	HASH_ITER (hh, report->all, told, next) {
		if (told->generation != report->generation)
			forget(report, told);
	}
}

void pod_report_deinit(struct pod_report *report)
{
	hash_release(report->all, free);
}

/* Metrics and status */

struct writer {
	const struct pod_report *report;
	FILE *out;
	cJSON *list;
	unsigned n;
};

static void write_pod(void *userdata, const struct pod *pod)
{
	struct writer *writer = userdata;
	struct pod_problems problems;

	/* Refused pods are many and short-lived: they are counted. */
	if (pod->phase != POD_ALIVE)
		return;
	pod_report_check(writer->report, &problems, pod);
	for (size_t i = 0; i < problems.n && writer->n < POD_REPORT_SERIES_MAX; i++, writer->n++) {
		fputs("weir_pod_problems{", writer->out);
		metric_label(writer->out, "namespace", pod->namespace_);
		metric_label(writer->out, ",pod", pod->name);
		metric_label(writer->out, ",subject", problems.all[i].subject);
		metric_label(writer->out, ",problem", problem_kind_name(problems.all[i].kind));
		fputs("} 1\n", writer->out);
	}
}

void pod_report_metrics(FILE *out, const struct pod_report *report)
{
	struct writer writer = {.report = report, .out = out};

	if (!report->pods)
		return;
	metric_head(out, "weir_pod_problems",
		    "1: an annotation of the pod is refused, invalid or unused.");
	pods_each(report->pods, write_pod, &writer);
	metric_head(out, "weir_pods_refused_total",
		    "Pods that were not admitted because their shares did not fit.");
	fprintf(out, "weir_pods_refused_total %" PRIu64 "\n", report->n_refused);
}

void pod_report_describe(cJSON *object, const struct pod_report *report, const struct pod *pod)
{
	cJSON *list = cJSON_AddArrayToObject(object, "problems");
	struct pod_problems problems;

	pod_report_check(report, &problems, pod);
	for (size_t i = 0; list && i < problems.n; i++) {
		cJSON *item = cJSON_CreateObject();
		if (!item)
			return;
		cJSON_AddItemToArray(list, item);
		cJSON_AddStringToObject(item, "subject", problems.all[i].subject);
		cJSON_AddStringToObject(item, "problem", problem_kind_name(problems.all[i].kind));
		cJSON_AddStringToObject(item, "message", problems.all[i].message);
	}
}

static void list_pod(void *userdata, const struct pod *pod)
{
	struct writer *writer = userdata;
	struct pod_problems problems;
	cJSON *item;

	pod_report_check(writer->report, &problems, pod);
	if (!problems.n || !(item = cJSON_CreateObject()))
		return;
	cJSON_AddItemToArray(writer->list, item);
	cJSON_AddStringToObject(item, "namespace", pod->namespace_);
	cJSON_AddStringToObject(item, "pod", pod->name);
	pod_report_describe(item, writer->report, pod);
}

cJSON *pod_report_list(const struct pod_report *report)
{
	struct writer writer = {.report = report, .list = cJSON_CreateArray()};

	if (writer.list && report->pods)
		pods_each(report->pods, list_pod, &writer);
	return writer.list;
}
