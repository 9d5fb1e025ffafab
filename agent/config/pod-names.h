/* Names of what Weir reads in a pod: five annotations and a resource. */
#pragma once

struct pod_names {
	const char *priority, *latency_slo, *memory, *weight, *compute, *memory_full, *share;
};
