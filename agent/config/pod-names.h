/* Names of what Weir reads in a pod: annotations and a resource. */
#pragma once

struct pod_names {
	const char *priority, *latency_slo, *memory, *weight, *compute, *memory_full, *yield,
		*min_rate, *share;
};
