#include "compile/compile.h"

#include "common/metric.h"

static const char *answer_name(unsigned answer)
{
	static const char *const names[] = {
		[WEIR_COMPILE_OK] = "ok",         [WEIR_COMPILE_REFUSED] = "refused",
		[WEIR_COMPILE_FAILED] = "failed", [WEIR_COMPILE_BUSY] = "busy",
		[WEIR_COMPILE_OFF] = "off",
	};

	return names[answer];
}

static const char *outcome_name(unsigned outcome)
{
	return helper_outcome_name((enum helper_outcome)outcome);
}

static uint64_t objects(const void *object)
{
	return HASH_COUNT(((const struct compile *)object)->cache.all);
}

#define AT(member) METRIC_AT(struct compile, member)

static const struct metric always[] = {
	{"weir_compile_requests_total", "Answers to requests for compiled kernels, by result.",
	 METRIC_ARRAY(struct compile, counters.answers), .label = "result",
	 .label_value = answer_name, .first = WEIR_COMPILE_OK, .end = WEIR_COMPILE_OFF + 1},
	{0},
};
static const struct metric while_on[] = {
	{"weir_compilations_total", "Runs of weir-compile.", AT(started)},
	{"weir_compile_failures_total", "Runs of weir-compile without an object, by reason.",
	 METRIC_ARRAY(struct compile, counters.outcomes), .label = "reason",
	 .label_value = outcome_name, .first = HELPER_REFUSED, .end = HELPER_OUTCOMES},
	{"weir_compile_cache_hits_total", "Requests answered from the cache.", AT(counters.hits)},
	{"weir_compile_cache_misses_total", "Requests not answered from the cache.",
	 AT(counters.misses)},
	{"weir_compile_known_failures_total", "Requests for kernels that are known not to compile.",
	 AT(counters.known_failures)},
	{"weir_compile_cache_damaged_total", "Damaged objects dropped from the cache.",
	 AT(counters.damaged)},
	{"weir_compile_cache_store_failures_total",
	 "Objects that could not be stored because the disk is full.", AT(counters.unkept)},
	{"weir_compile_cache_evicted_total", "Objects evicted to make room.", AT(cache.evicted)},
	{"weir_compile_cache_bytes", "Size of the cache.", AT(cache.bytes)},
	{"weir_compile_cache_objects", "Objects in the cache.", .get = objects},
	{0},
};

/* Its label is a text, not the index of an array. */
static void write_refusals(FILE *out, const struct compile_counters *counters)
{
	metric_head(out, "weir_compile_refusals_total",
		    "Forms refused in compiled objects, by form and reason.");
	for (unsigned i = 0; i < counters->n_reasons; i++) {
		const struct compile_reason *reason = &counters->reasons[i];
		fprintf(out, "weir_compile_refusals_total{form=\"%s\"",
			weir_form_name(reason->form));
		metric_label(out, ",reason", reason->text);
		fprintf(out, "} %llu\n", (unsigned long long)reason->n);
	}
	fprintf(out, "weir_compile_refusals_total{form=\"any\",reason=\"other\"} %llu\n",
		(unsigned long long)counters->other_reasons);
}

static void write_seconds(FILE *out, const struct compile_counters *counters)
{
	unsigned long long n = counters->outcomes[HELPER_DONE];

	fprintf(out, "# HELP weir_compile_seconds Time to make an object.\n"
		     "# TYPE weir_compile_seconds histogram\n");
	for (int i = 0; i < COMPILE_BUCKETS; i++)
		fprintf(out, "weir_compile_seconds_bucket{le=\"%g\"} %llu\n", compile_buckets[i],
			(unsigned long long)counters->buckets[i]);
	fprintf(out, "weir_compile_seconds_bucket{le=\"+Inf\"} %llu\n", n);
	fprintf(out, "weir_compile_seconds_sum %.9f\n", (double)counters->nanoseconds / 1e9);
	fprintf(out, "weir_compile_seconds_count %llu\n", n);
}

void compile_metrics_write(FILE *out, const struct compile *compile)
{
	metric_write_table(out, always, METRIC_OBJECT(compile));
	if (!compile->on)
		return;
	metric_write_table(out, while_on, METRIC_OBJECT(compile));
	write_refusals(out, &compile->counters);
	write_seconds(out, &compile->counters);
}
