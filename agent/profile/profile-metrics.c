#include "profile/profile-client.h"

#include "common/metric.h"

#define AT(member) METRIC_AT(struct profiles, member)

static const struct metric table[] = {
	{"weir_profiles", "Profiles of kernels that the agent keeps.", AT(n)},
	{"weir_profile_hits_total", "Kernels that a client asked for and that have profiles.",
	 AT(counters.hits)},
	{"weir_profile_misses_total", "Kernels that a client asked for and that have none.",
	 AT(counters.misses)},
	{"weir_profile_learned_total", "Profiles that clients taught.", AT(counters.learned)},
	{"weir_profile_refused_total",
	 "Profiles refused: out of range, or too many from a namespace.", AT(counters.refused)},
	{"weir_profile_evicted_total", "Profiles evicted to make room.", AT(counters.evicted)},
	{0},
};

void profile_metrics_write(FILE *out, const struct profile_service *service)
{
	if (service->on)
		metric_write_table(out, table, METRIC_OBJECT(&service->profiles));
}
