#include "reports/min-rate-report.h"

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/min-rates.h"
#include "scheduler/tenants.h"

#define TOLD_SUM (1u << 31)

/* Bits of rate_told: one for each set of hindrances. */
static bool is_new(struct usage *usage, uint32_t cause)
{
	bool told = usage->rate_told & cause;

	usage->rate_told |= cause;
	return !told;
}

static void tell_missed(struct events *events, const struct pod *pod, const struct tenant *tenant,
			const struct min_rate *rate)
{
	char wanted[MIN_RATE_TEXT_MAX], attained[MIN_RATE_TEXT_MAX];
	const char *why = min_rate_why(rate->hindered);

	events_tell(events, pod, EVENT_WARNING, "MinRateMissed",
		    "container %s had %s of its speed alone in the last second with work, not "
		    "%s: %s",
		    tenant->container,
		    rate->attained == MIN_RATE_UNKNOWN ? "an unknown part"
						       : min_rate_format(rate->attained, attained),
		    min_rate_format(rate->wanted, wanted), why ? why : MIN_RATE_NO_CAUSE);
}

void min_rate_report_look(struct events *events, struct pods *pods, struct gpu *gpu)
{
	uint64_t sum = gpu->rated ? min_rates_sum(gpu) : 0;
	char text[MIN_RATE_TEXT_MAX];

	for (struct client *client = gpu->rated ? gpu->clients : NULL; client;
	     client = client->gpu_next) {
		const struct tenant *tenant = client->tenant;
		struct usage *usage = tenant->min_rate ? tenant_usage(client->tenant, gpu) : NULL;
		const struct pod *pod = pods_of(pods, &tenant->identity);
		if (!usage || !pod)
			continue;
		if (sum > MIN_RATE_ONE && is_new(usage, TOLD_SUM))
			events_tell(events, pod, EVENT_WARNING, "MinRatesExceedGPU",
				    "the minimum rates of the pods on %s add up to %s: while all "
				    "of them have work they do not all get theirs",
				    gpu->id, min_rate_format(sum, text));
		if (usage->rate.missed && is_new(usage, 1u << usage->rate.hindered))
			tell_missed(events, pod, tenant, &usage->rate);
	}
}
