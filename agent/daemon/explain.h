/* `weirctl explain POD`: why a pod is refused, has its level, or is slow, in sentences. */
#pragma once

#include <stdio.h>

#include "daemon/decider.h"
#include "daemon/placement.h"
#include "daemon/pod-report.h"

struct explain_input {
	struct decider *decider;
	const struct pod_report *problems;
	const struct placement *placement;
};

/* Writes lines about @pod, which may be on another node or on none. */
void explain_pod(FILE *out, const struct explain_input *input, const struct pod *pod);
