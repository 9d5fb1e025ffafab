/* What is wrong with a pod's annotations, in words for its owner: each one that is refused, not
 * understood, not known, or without effect. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "kubernetes/podlist.h"

enum problem_kind {
	PROBLEM_REFUSED, /* understood, but not allowed: Weir does less than it says */
	PROBLEM_INVALID, /* not understood: the value, or the name */
	PROBLEM_UNUSED,  /* nothing that it could apply to */
	PROBLEM_KINDS,
};

struct pod_problem {
	enum problem_kind kind;
	char subject[80];  /* the annotation, or the resource */
	char message[320]; /* what is wrong, and the way out */
};

/* Each annotation has at most one; then the unknown ones, and a refused request. */
#define POD_PROBLEMS_MAX (2 * POD_NOTES + POD_UNKNOWN_MAX + 1)

struct pod_problems {
	size_t n;
	struct pod_problem all[POD_PROBLEMS_MAX];
};

/* A GPU that the pod may be on: a limit of memory may be too much for it. */
struct pod_check_gpu {
	uint64_t memory; /* bytes; 0: not known */
	struct config_memory by_default;
};

struct pod_check_input {
	const struct config_levels *levels;
	const struct pod_names *names;
	const struct pod_check_gpu *gpus;
	size_t n_gpus;
};

void pod_check(struct pod_problems *out, const struct pod_check_input *input,
	       const struct pod *pod);

/* "refused", "invalid" or "unused". */
const char *problem_kind_name(enum problem_kind kind);
/* Why a pod that failed was not admitted: the kubelet's message without its frame. NULL: the pod
 * did not fail for its shares. */
const char *pod_refusal(const struct pod *pod, const char *resource);
