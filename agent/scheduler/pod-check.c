#include "scheduler/pod-check.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "weir/units.h"
#include "hardware/limit.h"
#include "policy/min-rate.h"
#include "policy/objective.h"
#include "policy/yield.h"
#include "scheduler/level.h"
#include "scheduler/tenant-spec.h"

#define WHOLE 100 /* shares of a GPU */

static const char *const kind_names[PROBLEM_KINDS] = {
	[PROBLEM_REFUSED] = "refused", [PROBLEM_INVALID] = "invalid", [PROBLEM_UNUSED] = "unused"};

const char *problem_kind_name(enum problem_kind kind)
{
	return kind_names[kind];
}

/* Names and values are a tenant's: they go to terminals and logs of others. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

__attribute__((format(printf, 4, 5))) static void
add(struct pod_problems *out, enum problem_kind kind, const char *subject, const char *format, ...)
{
	struct pod_problem *problem = &out->all[out->n];
	va_list args;

	if (out->n == POD_PROBLEMS_MAX)
		return;
	out->n++;
	problem->kind = kind;
	snprintf(problem->subject, sizeof(problem->subject), "%s", subject);
	va_start(args, format);
	vsnprintf(problem->message, sizeof(problem->message), format, args);
	va_end(args);
	make_printable(problem->subject);
	make_printable(problem->message);
}

struct check {
	struct pod_problems *out;
	const struct pod_check_input *input;
	const struct pod *pod;
	const char *name; /* of the annotation */
};

static void check_priority(const struct check *check)
{
	const struct pod *pod = check->pod;
	struct level_input input = {.namespace_ = pod->namespace_,
				    .priority_class = pod->priority_class,
				    .qos = pod->qos,
				    .known_pod = true};
	struct level_decision decision;
	uint8_t wanted;

	level_decide(&decision, check->input->levels, &input);
	if (!config_level_parse(pod->priority, &wanted))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no level: expected low, normal, high or critical; the pod has level "
		    "%s (%s)",
		    pod->priority, config_level_name(decision.level), decision.reason);
	else if (wanted > decision.level && !level_may_raise(check->input->levels, pod->namespace_))
		add(check->out, PROBLEM_REFUSED, check->name,
		    "'%s' refused: the pod has level %s (%s), and annotations may raise a "
		    "pod only in the namespaces of levels.raiseNamespaces, which '%s' is not",
		    pod->priority, config_level_name(decision.level), decision.reason,
		    pod->namespace_);
}

static void check_latency(const struct check *check)
{
	uint64_t ns;

	if (!objective_parse(check->pod->latency_slo, &ns))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no objective: expected " OBJECTIVE_EXPECTED "; the pod has none",
		    check->pod->latency_slo);
}

/* On all GPUs of the node the pod gets less than it asks for. */
static bool is_cut(const struct check *check, uint64_t bytes, uint64_t *limit)
{
	struct memory_spec spec = {
		.bytes = bytes,
		.share = check->pod->least_share,
		.claimed = pod_claimed(check->pod),
		.may_raise = level_may_raise(check->input->levels, check->pod->namespace_),
	};
	bool cut = check->input->n_gpus > 0;

	for (size_t i = 0; cut && i < check->input->n_gpus; i++)
		*limit = memory_spec_limit(&spec, &check->input->gpus[i].by_default,
					   check->input->gpus[i].memory, &cut);
	return cut;
}

static void check_memory(const struct check *check)
{
	uint64_t bytes, limit = 0;

	if (!memory_parse(check->pod->memory, &bytes))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no limit: expected " MEMORY_EXPECTED "; the default limit applies",
		    check->pod->memory);
	else if (is_cut(check, bytes, &limit))
		add(check->out, PROBLEM_REFUSED, check->name,
		    "'%s' cut to %llu MiB, the default for %u shares or the claim: more is allowed "
		    "only in the "
		    "namespaces of levels.raiseNamespaces",
		    check->pod->memory, (unsigned long long)(limit >> 20), check->pod->least_share);
}

static void check_weight(const struct check *check)
{
	const struct pod *pod = check->pod;
	uint64_t wanted;

	if (!number_parse(pod->weight, WEIGHT_LEAST, WHOLE, &wanted))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no weight: expected " WEIGHT_EXPECTED "; the share is the weight",
		    pod->weight);
	else if (wanted > pod->least_share &&
		 !level_may_raise(check->input->levels, pod->namespace_))
		add(check->out, PROBLEM_REFUSED, check->name,
		    "'%s' refused: above the container's %u shares, which is allowed only in the "
		    "namespaces of levels.raiseNamespaces; the share is the weight",
		    pod->weight, pod->least_share);
}

/* A limit takes, and gives nothing: any pod may have one. */
static void check_compute(const struct check *check)
{
	uint64_t percent;

	if (!number_parse(check->pod->compute_limit, 1, WHOLE, &percent))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no limit: expected " LIMIT_EXPECTED ", per cent of a GPU's time; the "
		    "pod has none",
		    check->pod->compute_limit);
}

static void check_memory_full(const struct check *check)
{
	if (memory_full_parse(check->pod->memory_full) == MEMORY_FULL_DEFAULT)
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is not understood: expected fail or wait; the default applies",
		    check->pod->memory_full);
}

/* A yield asks for no more than the default gives, so any pod may have one. */
static void check_yield(const struct check *check)
{
	uint32_t yield;

	if (!yield_parse(check->pod->yield, &yield))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is not understood: expected %s; lower levels leave it the whole GPU",
		    check->pod->yield, YIELD_EXPECTED);
}

/* A minimum rate takes no more from lower levels than its level does, so any pod may have one. What
 * it takes from same-level clients is limited to the pod's share. */
static void check_min_rate(const struct check *check)
{
	const struct pod *pod = check->pod;
	uint32_t rate;

	if (!min_rate_parse(pod->min_rate, &rate))
		add(check->out, PROBLEM_INVALID, check->name,
		    "'%s' is no minimum rate: expected " MIN_RATE_EXPECTED
		    ", a part of the pod's speed alone; the pod has none",
		    pod->min_rate);
	else if (!min_rate_holds(rate, pod->least_share,
				 level_may_raise(check->input->levels, pod->namespace_)))
		add(check->out, PROBLEM_REFUSED, check->name,
		    "'%s' holds against lower levels only: it is above the container's %u shares, "
		    "which same-level clients leave to it only in the namespaces of "
		    "levels.raiseNamespaces",
		    pod->min_rate, pod->least_share);
}

static void check_note(struct check *check, enum pod_note note)
{
	static void (*const checks[POD_NOTES])(const struct check *check) = {
		[NOTE_PRIORITY] = check_priority, [NOTE_LATENCY_SLO] = check_latency,
		[NOTE_MEMORY] = check_memory,     [NOTE_WEIGHT] = check_weight,
		[NOTE_COMPUTE] = check_compute,   [NOTE_MEMORY_FULL] = check_memory_full,
		[NOTE_YIELD] = check_yield,       [NOTE_MIN_RATE] = check_min_rate,
	};
	const struct pod *pod = check->pod;
	const char *const values[POD_NOTES] = {
		[NOTE_PRIORITY] = pod->priority,     [NOTE_LATENCY_SLO] = pod->latency_slo,
		[NOTE_MEMORY] = pod->memory,         [NOTE_WEIGHT] = pod->weight,
		[NOTE_COMPUTE] = pod->compute_limit, [NOTE_MEMORY_FULL] = pod->memory_full,
		[NOTE_YIELD] = pod->yield,           [NOTE_MIN_RATE] = pod->min_rate,
	};

	check->name = pod_note_name(check->input->names, note);
	bool there = *values[note] || pod->empty_notes >> note & 1;
	if (!there)
		return;
	/* The share by a claim is known when the claim is prepared. */
	if (!pod->least_share && pod->has_claims)
		return;
	if (!pod->least_share)
		add(check->out, PROBLEM_UNUSED, check->name,
		    "has no effect: no container has a limit of %s", check->input->names->share);
	else if (pod->least_share == WHOLE)
		add(check->out, PROBLEM_UNUSED, check->name,
		    "has no effect: containers with whole GPUs run without Weir");
	else if (*values[note])
		checks[note](check);
	else
		add(check->out, PROBLEM_INVALID, check->name, "is empty: the default applies");
}

static void check_label(const struct check *check, enum pod_note note)
{
	const char *name = pod_note_name(check->input->names, note);

	if (check->pod->labels_like_note >> note & 1)
		add(check->out, PROBLEM_UNUSED, name,
		    "is a label of the pod and has no effect: Weir reads the annotation of this "
		    "name");
}

static void check_unknown(const struct check *check, const char *name)
{
	const struct pod_names *names = check->input->names;

	if (*name)
		add(check->out, PROBLEM_INVALID, name,
		    "is no annotation of Weir: expected %s, %s, %s, %s, %s, %s, %s or %s",
		    names->priority, names->latency_slo, names->memory, names->memory_full,
		    names->weight, names->compute, names->yield, names->min_rate);
}

static void check_request(const struct check *check)
{
	const char *resource = check->input->names->share;
	const char *refusal = pod_refusal(check->pod, resource);

	if (refusal)
		add(check->out, PROBLEM_REFUSED, resource, "%s", refusal);
}

void pod_check(struct pod_problems *out, const struct pod_check_input *input, const struct pod *pod)
{
	struct check check = {.out = out, .input = input, .pod = pod};

	out->n = 0;
	for (enum pod_note note = 0; note < POD_NOTES; note++) {
		check_note(&check, note);
		check_label(&check, note);
	}
	for (size_t i = 0; i < POD_UNKNOWN_MAX; i++)
		check_unknown(&check, pod->unknown[i]);
	check_request(&check);
}

/* The device plugin's message begins with the resource's name; the kubelet puts its own words
 * before it. Some of its refusals name only the resource, as in `OutOfweir.dev/gpu-share`. */
const char *pod_refusal(const struct pod *pod, const char *resource)
{
	const char *name = strstr(pod->status_message, resource);

	if (pod->phase != POD_FAILED)
		return NULL;
	if (strcmp(pod->status_reason, "UnexpectedAdmissionError") == 0 && name)
		return name[strlen(resource)] == ':' ? name + strlen(resource) + 2
						     : pod->status_message;
	return strncmp(pod->status_reason, "OutOf", 5) == 0 &&
			       strcmp(pod->status_reason + 5, resource) == 0
		       ? pod->status_message
		       : NULL;
}
