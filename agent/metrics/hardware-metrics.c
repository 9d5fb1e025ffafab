#include "metrics/metrics.h"

#include "common/metric.h"
#include "scheduler/gpu/gpus.h"

/* What the thread of a GPU's channel groups counted, at one time. */
struct row {
	const struct gpu *gpu;
	bool works;
	struct channels_counters counters;
	struct row *next;
};

#define AT(member) METRIC_AT(struct row, member)

static const struct metric table[] = {
	{"weir_hardware_preemption", "1: channel groups can be stopped and have slices.",
	 AT(works)},
	{"weir_channel_calls_total", "Calls of the driver about channel groups.",
	 AT(counters.calls)},
	{"weir_channel_call_seconds_total", "Time that these calls took.", METRIC_NS,
	 AT(counters.call_time)},
	{"weir_channel_stops_total", "Times that a channel group was stopped.", AT(counters.stops)},
	{"weir_channel_groups_refused_total",
	 "Channel groups of clients that are none, or of another GPU.", AT(counters.refused)},
	{"weir_slices_changed_total", "Slices that a process had changed by itself.",
	 AT(counters.disobeyed)},
	{0},
};

static void labels(FILE *out, const void *object)
{
	metric_label(out, "gpu", ((const struct row *)object)->gpu->id);
}

void hardware_metrics_write(FILE *out, struct gpu *gpus)
{
	static struct row rows[GPUS_MAX];
	size_t n = 0;

	for (struct gpu *gpu = gpus; gpu && n < GPUS_MAX; gpu = gpu->hh.next, n++) {
		rows[n] = (struct row){.gpu = gpu,
				       .works = gpu->self_test.state == SELF_TEST_WORKS,
				       .counters = channels_count(&gpu->channels)};
		if (n)
			rows[n - 1].next = &rows[n];
	}
	if (n)
		metric_write_table(
			out, table,
			&(struct metric_objects){rows, offsetof(struct row, next), labels});
}
