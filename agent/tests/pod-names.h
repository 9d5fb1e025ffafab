/* The names of Weir's annotations and of its resource, as the chart has them. */
#pragma once

#include "kubernetes/podlist.h"

static const struct pod_names pod_names = {.priority = "weir.dev/priority",
					   .latency_slo = "weir.dev/latency-slo",
					   .compute = "weir.dev/compute-limit",
					   .memory_full = "weir.dev/memory-full",
					   .yield = "weir.dev/yield",
					   .min_rate = "weir.dev/min-rate",
					   .memory = "weir.dev/memory",
					   .weight = "weir.dev/weight",
					   .share = "weir.dev/gpu-share"};
