/* Metrics: names, labels, escapes, units. And weirctl's table. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "metrics/metrics.h"
#include "weirctl/table.h"
#include "weirctl/top.h"

#include "weir/base.h"
#include "weir/transform.h"

static struct gpu gpu = {.id = "GPU-a", .name = "NVIDIA \"X\"", .n_level = {1, 0, 2, 0}};

static struct tenant *add(struct tenants *tenants, const char *id, const char *name,
			  uint64_t launches, uint64_t gpu_time)
{
	struct container_identity identity = {.in_pod = true};
	struct tenant *tenant;
	struct usage *usage;

	snprintf(identity.container_id, sizeof(identity.container_id), "%s", id);
	assert_int_equal(tenants_enter(tenants, &identity, &tenant), 0);
	snprintf(tenant->namespace_, sizeof(tenant->namespace_), "%s", "ns");
	snprintf(tenant->pod, sizeof(tenant->pod), "%s", "web\\\"\n");
	snprintf(tenant->container, sizeof(tenant->container), "%s", name);
	usage = tenant_usage(tenant, &gpu);
	assert_non_null(usage);
	usage->account.total[ACCOUNT_LAUNCHES] = launches;
	usage->account.total[ACCOUNT_GPU_TIME] = gpu_time;
	return tenant;
}

static char *write_all(struct tenants *tenants, bool kubernetes)
{
	struct metrics_input input = {
		.tenants = tenants,
		.gpus = NULL,
		.policy = "hpf",
		.kubernetes = kubernetes,
		.connected = true,
	};
	char *text = NULL;
	size_t size;

	HASH_ADD(hh, input.gpus, uuid, sizeof(gpu.uuid), &gpu);
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(metrics_write(out, &input), 0);
	fclose(out);
	HASH_CLEAR(hh, input.gpus);
	return text;
}

static void test_metrics(void **state)
{
	static const char *const lines[] = {
		"weir_policy_info{policy=\"hpf\"} 1\n",
		"weir_api_server_connected 1\n",
		"weir_gpu_info{gpu=\"GPU-a\",name=\"NVIDIA \\\"X\\\"\"} 1\n",
		"weir_clients{gpu=\"GPU-a\",level=\"high\"} 2\n",
		"# TYPE weir_launches_total counter\n",
		("weir_launches_total{namespace=\"ns\",pod=\"web\\\\\\\"\\n\","
		 "container=\"main\",gpu=\"GPU-a\"} 7\n"),
		("weir_gpu_seconds_total{namespace=\"ns\",pod=\"web\\\\\\\"\\n\","
		 "container=\"side\",gpu=\"GPU-a\"} 2.000000005\n"),
		"weir_predictions_total{",
		"gpu=\"GPU-a\",form=\"persistent\"} 3\n",
		"container=\"main\",gpu=\"GPU-a\"} 0.250000000\n",
		"container=\"side\",gpu=\"GPU-a\"} 1\n",
		"gpu=\"GPU-a\"} 12.034567\n",
	};
	struct tenants tenants = {0};

	(void)state;
	add(&tenants, "1", "main", 5, 0);
	add(&tenants, "2", "side", 1, 2000000005);
	add(&tenants, "3", "main", 2, 0);
	tenants.all->usages->account.total[ACCOUNT_PREDICTION_ERROR] = 12034567;
	tenants.all->usages->account.total[ACCOUNT_FORM_EVICTIONS + WEIR_PERSISTENT] = 3;
	tenants.all->usages->held = 250000000;
	char *text = write_all(&tenants, true);
	assert_null(strstr(text, "form=\"sliced\""));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr(text, lines[i]));
	/* No series occurs twice, even if two containers have the same name. */
	const char *first = strstr(text, lines[5]);
	assert_null(strstr(first + 1, "weir_launches_total{namespace=\"ns\",pod=\"web\\\\\\\"\\n\","
				      "container=\"main\""));
	free(text);
	tenants_deinit(&tenants);
}

/* A renamed metric is also exported under its old name. */
static void test_deprecated_names(void **state)
{
	static const char *const names[][2] = {
		{"weir_demands", "weir_clients_active"},
		{"weir_kernels_comparing", "weir_kernels_tuning"},
		{"weir_held_seconds_total", "weir_throttled_seconds_total"},
		{"weir_turns_total", "weir_context_switches_total"},
		{"weir_early_demand_total", "weir_speculative_demand_total"},
		{"weir_early_demand_vain_total", "weir_speculative_demand_misses_total"},
		{"weir_early_demand_seconds_total", "weir_speculative_demand_seconds_total"},
	};
	struct tenants tenants = {0};

	(void)state;
	struct usage *usage = add(&tenants, "1", "main", 5, 0)->usages;
	usage->active = true;
	usage->tuning = 2;
	usage->held = 3;
	for (int i = ACCOUNT_SPECULATIVE; i <= ACCOUNT_SPECULATIVE_TIME; i++)
		usage->account.total[i] = 40 + (uint64_t)i;
	cleanup(freep) char *text = write_all(&tenants, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char line[128];
		snprintf(line, sizeof(line), "# HELP %s Deprecated: use %s.\n", names[i][0],
			 names[i][1]);
		assert_non_null(strstr(text, line));
		/* The same series with the same values. */
		for (size_t j = 0; j < 2; j++)
			snprintf(line + 60 * j, 60, "\n%s{", names[i][j]);
		const char *old = strstr(text, line), *new = strstr(text, line + 60);
		assert_non_null(old);
		assert_non_null(new);
		old = strchr(old, '{');
		new = strchr(new, '{');
		assert_memory_equal(old, new, (size_t)(strchr(old, '\n') - old) + 1);
	}
	tenants_deinit(&tenants);
}

static void test_standalone(void **state)
{
	struct tenants tenants = {0};

	(void)state;
	char *text = write_all(&tenants, false);
	assert_null(strstr(text, "api_server"));
	assert_non_null(strstr(text, "weir_build_info{version=\"" WEIR_VERSION "\"} 1\n"));
	free(text);
}

/* Reserved memory of all containers, and the limit of those that have one. */
static void test_memory(void **state)
{
	struct tenants tenants = {0};
	struct tenant *tenant = add(&tenants, "a", "main", 3, 0);

	(void)state;
	add(&tenants, "b", "side", 3, 0);
	tenant->usages->memory_limit = 1000;
	tenant->usages->memory_reserved = 700;
	char *text = write_all(&tenants, false);
	const char *reserved = strstr(text, "weir_memory_reserved_bytes{");
	assert_non_null(reserved);
	assert_non_null(strstr(reserved, "container=\"main\",gpu=\"GPU-a\"} 700\n"));
	assert_non_null(strstr(reserved, "container=\"side\",gpu=\"GPU-a\"} 0\n"));
	const char *limit = strstr(text, "weir_memory_limit_bytes{");
	assert_non_null(limit);
	assert_non_null(strstr(limit, "container=\"main\",gpu=\"GPU-a\"} 1000\n"));
	assert_null(strstr(limit, "side"));
	free(text);
	tenants_deinit(&tenants);
}

static void test_min_rate(void **state)
{
	struct tenants tenants = {0};
	struct tenant *tenant = add(&tenants, "a", "main", 3, 0);

	(void)state;
	add(&tenants, "b", "side", 3, 0);
	tenant->min_rate = 800;
	min_rate_set(&tenant->usages->rate, 800);
	tenant->usages->rate.time = 5000000000;
	tenant->usages->rate.missed_time = 1000000000;
	char *text = write_all(&tenants, false);
	assert_non_null(strstr(text, "weir_min_rate_ratio{"));
	assert_null(strstr(text, "weir_min_rate_attained_ratio{")); /* not known yet */
	free(text);
	tenant->usages->rate.attained = 755;
	tenant->usages->rate.missed = true;
	text = write_all(&tenants, false);
	const char *attained = strstr(text, "weir_min_rate_attained_ratio{");
	assert_non_null(attained);
	assert_non_null(strstr(attained, "container=\"main\",gpu=\"GPU-a\"} 0.755000\n"));
	const char *missed = strstr(text, "weir_min_rate_missed{");
	assert_non_null(missed);
	assert_non_null(strstr(missed, "container=\"main\",gpu=\"GPU-a\"} 1\n"));
	assert_non_null(strstr(text, "\"} 5.000000000\n"));

	free(text);
	tenant->min_rate = 0; /* the counters stay */
	text = write_all(&tenants, false);
	assert_null(strstr(text, "weir_min_rate_ratio{"));
	assert_null(strstr(text, "weir_min_rate_attained_ratio{"));
	assert_non_null(strstr(text, "weir_min_rate_missed_seconds_total{"));
	free(text);
	tenants_deinit(&tenants);
}

/* The counters stay when the limit goes. */
static void test_compute(void **state)
{
	struct tenants tenants = {0};
	struct tenant *tenant = add(&tenants, "a", "main", 3, 0);

	(void)state;
	add(&tenants, "b", "side", 3, 0);
	tenant->compute_limit = 30;
	tenant->usages->limit.used = 1500000000;
	tenant->usages->limit.throttled = 2000000000;
	char *text = write_all(&tenants, false);
	const char *ratio = strstr(text, "weir_compute_limit_ratio{");
	assert_non_null(ratio);
	assert_non_null(strstr(ratio, "container=\"main\",gpu=\"GPU-a\"} 0.300000\n"));
	const char *used = strstr(text, "weir_compute_seconds_total{");
	assert_non_null(used);
	assert_non_null(strstr(used, "container=\"main\",gpu=\"GPU-a\"} 1.500000000\n"));
	const char *end = strstr(used, "# HELP");
	assert_non_null(end);
	const char *side = strstr(used, "container=\"side\"");
	assert_true(!side || side > end);
	assert_non_null(strstr(text, "weir_compute_throttled_seconds_total{"));
	free(text);
	tenant->compute_limit = 0;
	text = write_all(&tenants, false);
	assert_null(strstr(text, "weir_compute_limit_ratio{"));
	assert_non_null(strstr(text, "weir_compute_seconds_total{"));
	free(text);
	tenants_deinit(&tenants);
}

/* Only containers with an objective have these metrics. */
static void test_objective(void **state)
{
	struct tenants tenants = {0};
	struct tenant *tenant = add(&tenants, "a", "main", 3, 0);

	(void)state;
	add(&tenants, "b", "side", 3, 0);
	tenant->slo = 2000000;
	tenant->usages->objective = (struct objective){.starts = 500, .late = 7, .missed = true};
	char *text = write_all(&tenants, false);
	assert_non_null(strstr(text, "weir_latency_slo_seconds{namespace=\"ns\","));
	assert_non_null(strstr(text, "container=\"main\",gpu=\"GPU-a\"} 0.002000000\n"));
	assert_non_null(strstr(text, "weir_latency_slo_starts_total{"));
	assert_non_null(strstr(text, "container=\"main\",gpu=\"GPU-a\"} 500\n"));
	assert_non_null(strstr(text, "container=\"main\",gpu=\"GPU-a\"} 7\n"));
	const char *missed = strstr(text, "weir_latency_slo_missed{");
	assert_non_null(missed);
	const char *side = strstr(missed, "side"), *next = strstr(missed, "# HELP");
	assert_true(!side || (next && next < side));
	assert_null(strstr(text, "(null)"));
	free(text);
	tenants_deinit(&tenants);
}

/* A changed start time would look like a restart. */
static void test_start_time_stays(void **state)
{
	static const char name[] = "\nprocess_start_time_seconds ";
	char first[64] = "";

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		process_metrics_write(out);
		fclose(out);
		const char *line = strstr(text, name);
		assert_non_null(line);
		if (i == 0)
			snprintf(first, sizeof(first), "%s", line);
		assert_string_equal(line, first);
		free(text);
	}
}

static char *table(const char *json, enum table_view view)
{
	cJSON *status = cJSON_Parse(json);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	table_print(out, status, view);
	fclose(out);
	cJSON_Delete(status);
	return text;
}

static void test_table(void **state)
{
	(void)state;
	char *text = table(
		"{\"clients\":[{\"namespace\":\"ns\",\"pod\":\"web\",\"container\":\"m\\u001b\","
		"\"client\":3,\"pid\":7,\"level\":2,\"actingLevel\":9,\"share\":40,"
		"\"memoryReserved\":3145728,\"memoryLimit\":8388608,"
		"\"state\":\"held\",\"gpuSeconds\":1.5,\"launches\":1e6,\"gpu\":\"GPU-a\"},"
		"{\"uid\":5,\"command\":\"sh\"}]}",
		TABLE_STATUS);
	assert_non_null(strstr(text,
			       "3  ns/web  m?           7  high   -          40   3 MiB  8 MiB"
			       "  held    1.500 s   1000000"));
	assert_non_null(strstr(text, "uid 5   sh"));
	free(text);
	text = table("{\"clients\":[{\"gpu\":\"GPU-a\",\"reason\":\"QoS\",\"minRate\":0.8,"
		     "\"minRateAttained\":0.755,\"minRateWhy\":\"of that\"}]}",
		     TABLE_STATUS);
	assert_non_null(strstr(text, "80.0   75.5"));
	assert_non_null(strstr(text, "QoS; min-rate missed: of that\n"));
	free(text);
	text = table("{\"clients\":[{\"gpu\":\"GPU-a\",\"reason\":\"QoS\",\"problems\":["
		     "{\"subject\":\"weir.dev/priority\",\"problem\":\"refused\"},"
		     "{\"subject\":\"weir.dev/weight\",\"problem\":\"invalid\"}]}],"
		     "\"pods\":[{\"namespace\":\"ns\",\"pod\":\"web\",\"problems\":["
		     "{\"subject\":\"weir.dev/weight\",\"message\":\"'\\u001b' is no weight\"}]}]}",
		     TABLE_STATUS);
	assert_non_null(strstr(text, "GPU-a  QoS; weir.dev/weight invalid\n"));
	assert_non_null(strstr(text, "pod ns/web: weir.dev/weight '?' is no weight\n"));
	free(text);
	text = table("{}", TABLE_STATUS);
	assert_non_null(strstr(text, "no clients"));
	free(text);
	text = table("[1, 2]", TABLE_TOP);
	assert_non_null(strstr(text, "no clients"));
	free(text);
}

/* Rates of clients that are in both answers. */
static void test_top(void **state)
{
	cJSON *before = cJSON_Parse("{\"clients\":[{\"client\":1,\"gpuSeconds\":1,"
				    "\"waitSeconds\":3,\"launches\":10},{\"client\":\"x\"}]}");
	cJSON *now = cJSON_Parse("{\"clients\":[{\"client\":1,\"gpuSeconds\":2,"
				 "\"waitSeconds\":3.5,\"launches\":110,\"smsNeeded\":12,"
				 "\"smsLeft\":120,\"workers\":3},{\"client\":2,"
				 "\"gpuSeconds\":9},{\"client\":\"x\"}]}");

	(void)state;
	top_rates(now, before, 2);
	char *json = cJSON_PrintUnformatted(now);
	char *text = table(json, TABLE_TOP);
	assert_non_null(strstr(text, "GPU %  WAIT %  LAUNCHES/S"));
	assert_non_null(strstr(text, " 50.0    25.0          50"));
	assert_non_null(strstr(text, "  SMS  SMS LEFT  WORKERS"));
	assert_non_null(strstr(text, "   12       120        3"));
	assert_non_null(strstr(text, "    -         -        -")); /* time-sliced */
	assert_null(strstr(text, "EVICTIONS"));
	const cJSON *second = cJSON_GetArrayItem(cJSON_GetObjectItem(now, "clients"), 1);
	assert_null(cJSON_GetObjectItem(second, "gpuShare"));
	free(text);
	free(json);
	cJSON_Delete(before);
	cJSON_Delete(now);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics),    cmocka_unit_test(test_deprecated_names),
		cmocka_unit_test(test_standalone), cmocka_unit_test(test_table),
		cmocka_unit_test(test_top),        cmocka_unit_test(test_objective),
		cmocka_unit_test(test_memory),     cmocka_unit_test(test_compute),
		cmocka_unit_test(test_min_rate),   cmocka_unit_test(test_start_time_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
