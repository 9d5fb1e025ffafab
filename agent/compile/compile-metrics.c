#include "compile/compile-metrics.h"

#include "metrics/metrics.h"

static void write_counter(FILE *out, const char *name, const char *help, uint64_t value)
{
	metrics_head(out, name, "counter", help);
	fprintf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void write_answers(FILE *out, const struct compile_counters *counters)
{
	static const char *const names[] = {
		[WEIR_COMPILE_OK] = "ok",         [WEIR_COMPILE_REFUSED] = "refused",
		[WEIR_COMPILE_FAILED] = "failed", [WEIR_COMPILE_BUSY] = "busy",
		[WEIR_COMPILE_OFF] = "off",
	};

	metrics_head(out, "weir_compile_requests_total", "counter",
		     "Answers to requests for compiled kernels, by result.");
	for (int i = WEIR_COMPILE_OK; i <= WEIR_COMPILE_OFF; i++)
		fprintf(out, "weir_compile_requests_total{result=\"%s\"} %llu\n", names[i],
			(unsigned long long)counters->answers[i]);
}

static void write_failures(FILE *out, const struct compile_counters *counters)
{
	metrics_head(out, "weir_compile_failures_total", "counter",
		     "Runs of weir-compile without an object, by reason.");
	for (int i = HELPER_REFUSED; i < HELPER_OUTCOMES; i++)
		fprintf(out, "weir_compile_failures_total{reason=\"%s\"} %llu\n",
			helper_outcome_name((enum helper_outcome)i),
			(unsigned long long)counters->outcomes[i]);
}

static void write_refusals(FILE *out, const struct compile_counters *counters)
{
	metrics_head(out, "weir_compile_refusals_total", "counter",
		     "Forms refused in compiled objects, by form and reason.");
	for (unsigned i = 0; i < counters->n_reasons; i++) {
		const struct compile_reason *reason = &counters->reasons[i];
		fprintf(out, "weir_compile_refusals_total{form=\"%s\"",
			weir_form_name(reason->form));
		metrics_label(out, ",reason", reason->text);
		fprintf(out, "} %llu\n", (unsigned long long)reason->n);
	}
	fprintf(out, "weir_compile_refusals_total{form=\"any\",reason=\"other\"} %llu\n",
		(unsigned long long)counters->other_reasons);
}

static void write_seconds(FILE *out, const struct compile_counters *counters)
{
	unsigned long long n = counters->outcomes[HELPER_DONE];

	metrics_head(out, "weir_compile_seconds", "histogram", "Time to make an object.");
	for (int i = 0; i < COMPILE_BUCKETS; i++)
		fprintf(out, "weir_compile_seconds_bucket{le=\"%g\"} %llu\n", compile_buckets[i],
			(unsigned long long)counters->buckets[i]);
	fprintf(out, "weir_compile_seconds_bucket{le=\"+Inf\"} %llu\n", n);
	fputs("weir_compile_seconds_sum ", out);
	metrics_nanoseconds(out, counters->nanoseconds);
	fprintf(out, "weir_compile_seconds_count %llu\n", n);
}

static void write_cache(FILE *out, const struct compile *compile)
{
	const struct compile_counters *counters = &compile->counters;

	write_counter(out, "weir_compile_cache_hits_total", "Requests that the cache answered.",
		      counters->hits);
	write_counter(out, "weir_compile_cache_misses_total", "Requests that it did not.",
		      counters->misses);
	write_counter(out, "weir_compile_known_failures_total",
		      "Requests that are known to come to nothing.", counters->known_failures);
	write_counter(out, "weir_compile_cache_damaged_total",
		      "Objects found damaged, and dropped.", counters->damaged);
	write_counter(out, "weir_compile_cache_unkept_total",
		      "Objects that found no room on the disk.", counters->unkept);
	write_counter(out, "weir_compile_cache_evicted_total", "Objects evicted for others.",
		      compile->cache.evicted);
	metrics_head(out, "weir_compile_cache_bytes", "gauge", "What the cache holds.");
	fprintf(out, "weir_compile_cache_bytes %llu\n", (unsigned long long)compile->cache.bytes);
	metrics_head(out, "weir_compile_cache_objects", "gauge", "Objects in the cache.");
	fprintf(out, "weir_compile_cache_objects %u\n", HASH_COUNT(compile->cache.all));
}

void compile_metrics_write(FILE *out, const struct compile *compile)
{
	const struct compile_counters *counters = &compile->counters;

	write_answers(out, counters);
	if (!compile->on)
		return;
	write_counter(out, "weir_compilations_total", "Runs of weir-compile.", compile->started);
	write_failures(out, counters);
	write_refusals(out, counters);
	write_seconds(out, counters);
	write_cache(out, compile);
}
