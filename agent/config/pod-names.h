/* Names of what Weir reads in a pod: four annotations and a resource. */
#pragma once

struct pod_names {
	const char *priority, *latency_slo, *memory, *weight, *share;
};
