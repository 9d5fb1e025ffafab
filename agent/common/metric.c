#include "common/metric.h"

#include <fnmatch.h>
#include <string.h>

#include "common/text.h"

#include "weir/base.h"

/* Old names of metrics, written for one release beside the new ones. */
static const struct {
	const char *old, *new;
} deprecated[] = {
	{"weir_demands", "weir_clients_active"},
	{"weir_kernels_comparing", "weir_kernels_tuning"},
	{"weir_held_seconds_total", "weir_throttled_seconds_total"},
	{"weir_turns_total", "weir_context_switches_total"},
	{"weir_early_demand_total", "weir_speculative_demand_total"},
	{"weir_early_demand_vain_total", "weir_speculative_demand_misses_total"},
	{"weir_early_demand_seconds_total", "weir_speculative_demand_seconds_total"},
	{"weir_compile_cache_unkept_total", "weir_compile_cache_store_failures_total"},
};

void metric_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		fnmatch("*_total", name, 0) == 0 ? "counter" : "gauge");
}

void metric_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	while (*value) {
		size_t n = text_character(value);
		if (n == 0)
			fputc('?', out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			fwrite(value, 1, n, out);
		value += n ? n : 1;
	}
	fputc('"', out);
}

void metric_info(FILE *out, const char *name, const char *help, const char *label,
		 const char *value)
{
	metric_head(out, name, help);
	fprintf(out, "%s{", name);
	metric_label(out, label, value);
	fputs("} 1\n", out);
}

static uint64_t read_value(const struct metric *metric, const void *object, unsigned i)
{
	size_t stride = metric->stride ? metric->stride : metric->size;
	const void *at = (const char *)object + metric->offset + i * stride;

	if (metric->get)
		return metric->get(object);
	switch (metric->size) {
	case sizeof(uint8_t):
		return *(const uint8_t *)at;
	case sizeof(uint32_t):
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void write_value(FILE *out, enum metric_unit unit, uint64_t value)
{
	if (unit == METRIC_NS)
		fprintf(out, "%llu.%09llu\n", (unsigned long long)(value / 1000000000),
			(unsigned long long)(value % 1000000000));
	else if (unit == METRIC_MILLIONTHS)
		fprintf(out, "%llu.%06llu\n", (unsigned long long)(value / 1000000),
			(unsigned long long)(value % 1000000));
	else
		fprintf(out, "%llu\n", (unsigned long long)value);
}

static void write_labels(FILE *out, const struct metric *metric,
			 const struct metric_objects *objects, const void *object, unsigned i)
{
	if (!objects->labels && !metric->label)
		return;
	fputc('{', out);
	if (objects->labels)
		objects->labels(out, object);
	if (objects->labels && metric->label)
		fputc(',', out);
	if (metric->label)
		metric_label(out, metric->label, metric->label_value(i));
	fputc('}', out);
}

static void write_object(FILE *out, const struct metric *metric,
			 const struct metric_objects *objects, const void *object)
{
	unsigned end = metric->label ? metric->end : 1;

	for (unsigned i = metric->first; i < end; i++) {
		uint64_t value = read_value(metric, object, i);
		if (value == METRIC_NONE || (metric->skip_zeros && value == 0))
			continue;
		fputs(metric->name, out);
		write_labels(out, metric, objects, object, i);
		fputc(' ', out);
		write_value(out, metric->unit, value);
	}
}

static void write_metric(FILE *out, const struct metric *metric,
			 const struct metric_objects *objects)
{
	const void *object = objects->first;

	metric_head(out, metric->name, metric->help);
	while (object) {
		const char *next = (const char *)object + objects->next;
		write_object(out, metric, objects, object);
		object = objects->next ? *(const void *const *)next : NULL;
	}
}

static void write_deprecated(FILE *out, const struct metric *metric,
			     const struct metric_objects *objects)
{
	struct metric old = *metric;
	char help[96];

	snprintf(help, sizeof(help), "Deprecated: use %s.", metric->name);
	old.help = help;
	for (size_t i = 0; i < countof(deprecated); i++) {
		if (strcmp(metric->name, deprecated[i].new) == 0) {
			old.name = deprecated[i].old;
			write_metric(out, &old, objects);
		}
	}
}

void metric_write_table(FILE *out, const struct metric *table, const struct metric_objects *objects)
{
	for (; table->name; table++) {
		write_metric(out, table, objects);
		write_deprecated(out, table, objects);
	}
}
