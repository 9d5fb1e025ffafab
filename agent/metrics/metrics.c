#include "metrics/metrics.h"

#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "common/metric.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/transform.h"

/* One container on one GPU. Containers of the same name, as after a restart, are one row. */
struct row {
	const struct tenant *tenant;
	struct row *next;
	struct usage usage;
	uint64_t slo, missed, compute_limit, min_rate, attained, rate_missed;
	uint8_t level;
};

static const char *form_name(unsigned form)
{
	return weir_form_name((enum weir_form)form);
}

#define AT(member)     METRIC_AT(struct row, usage.member)
#define TOTAL(counter) AT(account.total[counter])
#define BY_FORM \
	.label = "form", .label_value = form_name, .end = WEIR_FORM_COUNT, .skip_zeros = true

static const struct metric container_metrics[] = {
	{"weir_launches_total", "Kernels and graphs launched.", TOTAL(ACCOUNT_LAUNCHES)},
	{"weir_gpu_seconds_total", "Predicted GPU time of the launches.", METRIC_NS,
	 TOTAL(ACCOUNT_GPU_TIME)},
	{"weir_gates_total", "Gates put into streams.", TOTAL(ACCOUNT_GATES)},
	{"weir_gates_closed_total", "Gates that were closed when they were put into a stream.",
	 TOTAL(ACCOUNT_GATES_CLOSED)},
	{"weir_waits_total", "Times that the container's work began to wait.",
	 TOTAL(ACCOUNT_WAITS)},
	{"weir_wait_seconds_total", "Time that the container's work waited.", METRIC_NS,
	 TOTAL(ACCOUNT_WAIT_TIME)},
	{"weir_evictions_total", "Running kernels that were evicted.", TOTAL(ACCOUNT_EVICTIONS)},
	{"weir_blocks_saved_total", "Blocks of evicted kernels whose state was saved.",
	 TOTAL(ACCOUNT_BLOCKS_SAVED)},
	{"weir_blocks_drained_total", "Blocks of evicted kernels that were finished instead.",
	 TOTAL(ACCOUNT_BLOCKS_DRAINED)},
	{"weir_saved_bytes_total", "Bytes of these saved blocks, at most.",
	 TOTAL(ACCOUNT_BYTES_SAVED)},
	{"weir_partial_leaves_total",
	 "Running kernels that left a part of the SMs to higher-level clients.",
	 TOTAL(ACCOUNT_PARTIAL_LEAVES)},
	{"weir_loops_blocked_total",
	 "Times that a loop's kernel left the GPU because all its blocks waited.",
	 TOTAL(ACCOUNT_LOOPS_BLOCKED)},
	{"weir_loops_blocked_seconds_total", "Time that these kernels were away.", METRIC_NS,
	 TOTAL(ACCOUNT_LOOPS_BLOCKED_TIME)},
	{"weir_demand_seconds_total", "Time with outstanding work, running or waiting.", METRIC_NS,
	 TOTAL(ACCOUNT_DEMAND_TIME)},
	{"weir_speculative_demand_total",
	 "Times that a copy to the GPU raised demand before a launch.", TOTAL(ACCOUNT_SPECULATIVE)},
	{"weir_speculative_demand_misses_total", "Speculative demands that no launch followed.",
	 TOTAL(ACCOUNT_SPECULATIVE_MISSES)},
	{"weir_speculative_demand_seconds_total",
	 "Time from speculative demands to their launches.", METRIC_NS,
	 TOTAL(ACCOUNT_SPECULATIVE_TIME)},
	{"weir_predictions_total", "Measured launches whose time was predicted.",
	 TOTAL(ACCOUNT_PREDICTIONS)},
	{"weir_prediction_error_total", "Sum of the relative errors of these predictions.",
	 METRIC_MILLIONTHS, TOTAL(ACCOUNT_PREDICTION_ERROR)},
	{"weir_container_level", "Level of the container, 0 to 3.", METRIC_AT(struct row, level)},
	{"weir_clients_active", "1: the container has outstanding work.", AT(active)},
	{"weir_throttled_seconds_total",
	 "Time that the container was held for same-level clients or by command.", METRIC_NS,
	 AT(held)},
	{"weir_kernels_tuning", "Kernels whose form is still being made or compared.", AT(tuning)},
	{"weir_form_launches_total", "Kernels launched in forms that can be evicted, by form.",
	 TOTAL(ACCOUNT_FORM_LAUNCHES), BY_FORM},
	{"weir_form_evictions_total", "Running kernels that were evicted, by form.",
	 TOTAL(ACCOUNT_FORM_EVICTIONS), BY_FORM},
	{"weir_latency_slo_seconds", "Latency objective: target for the time from launch to start.",
	 METRIC_NS, METRIC_AT(struct row, slo)},
	{"weir_latency_slo_starts_total", "Starts that the objective applies to.",
	 AT(objective.starts)},
	{"weir_latency_slo_late_total", "Of these starts: late ones, as an upper bound.",
	 AT(objective.late)},
	{"weir_latency_slo_missed", "1: over 0.1 % of the last 1000 starts or more were late.",
	 METRIC_AT(struct row, missed)},
	{"weir_compute_limit_ratio", "Compute limit: part of a GPU's time.", METRIC_MILLIONTHS,
	 METRIC_AT(struct row, compute_limit)},
	{"weir_compute_seconds_total", "GPU time charged to the compute limit.", METRIC_NS,
	 AT(limit.used)},
	{"weir_compute_throttled_seconds_total",
	 "Time that the container had work and was over its compute limit.", METRIC_NS,
	 AT(limit.throttled)},
	{"weir_min_rate_ratio", "Minimum rate: part of the speed alone.", METRIC_MILLIONTHS,
	 METRIC_AT(struct row, min_rate)},
	{"weir_min_rate_attained_ratio", "The rate in the last second with work.",
	 METRIC_MILLIONTHS, METRIC_AT(struct row, attained)},
	{"weir_min_rate_missed", "1: in that second it fell short by more than 0.02.",
	 METRIC_AT(struct row, rate_missed)},
	{"weir_min_rate_seconds_total", "Time with work and a minimum rate.", METRIC_NS,
	 AT(rate.time)},
	{"weir_min_rate_missed_seconds_total", "Of this time: seconds that fell short of it.",
	 METRIC_NS, AT(rate.missed_time)},
	{"weir_container_sms_needed",
	 "SMs that the container's work needs from lower levels now, where clients run at the same "
	 "time.",
	 AT(sms_needed)},
	{"weir_container_sms_left",
	 "SMs that higher levels leave to the container now, where clients run at the same time.",
	 AT(sms_left)},
	{"weir_container_clients", "Clients of the container.", AT(quotas.clients)},
	{"weir_container_demand_slots", "Demand bits that only these clients have.",
	 AT(quotas.bits)},
	{"weir_container_memory_accounts", "Processes of the container with memory accounts.",
	 AT(quotas.accounts)},
	{"weir_container_refused_total", "Clients and memory accounts that were refused.",
	 AT(quotas.refused)},
	{"weir_container_compile_busy_total", "Requests for kernels that must be made again later.",
	 AT(quotas.compile_busy)},
	{"weir_container_holds_disobeyed_total",
	 "Times that a client of the container ran although it was held.", AT(quotas.disobeyed)},
	{"weir_container_holds_disobeyed_killed_total",
	 "Processes of the container that were killed for that, if the configuration says so.",
	 AT(quotas.killed[ENDING_DISOBEDIENCE])},
	{"weir_container_overruns_total",
	 "Kernels of the container that did not leave the GPU although others waited.",
	 AT(quotas.overruns)},
	{"weir_container_overruns_killed_total",
	 "Processes of the container that were killed for that, if the configuration says so.",
	 AT(quotas.killed[ENDING_OVERRUN])},
	{"weir_memory_reserved_bytes", "GPU memory that the container's processes reserved.",
	 AT(memory_reserved)},
	{"weir_memory_waits_total", "Allocations that waited because the GPU was full.",
	 AT(memory_waits.n)},
	{"weir_memory_waiting", "Of these allocations: those that wait now.",
	 AT(memory_waits.waiting)},
	{"weir_memory_wait_seconds_total", "Time of the waits that are over.", METRIC_NS,
	 AT(memory_waits.waited)},
	{"weir_memory_limit_bytes", "Limit of this memory, if there is one.", AT(memory_limit)},
	{0},
};

#undef AT
#define AT(member) METRIC_ARRAY(struct gpu, member)
#define BY_LEVEL   .label = "level", .label_value = config_level_name, .end = WEIR_LEVELS

static const struct metric gpu_metrics[] = {
	{"weir_clients", "Clients connected, by GPU and level.", AT(n_level), BY_LEVEL},
	{"weir_demand_slots_refused_total",
	 "Times that a client above the lowest level got no demand bit of its own.",
	 METRIC_AT(struct gpu, bits_refused)},
	{"weir_context_switches_total",
	 "Times that a client took over from a same-level client, by GPU and level.",
	 METRIC_AT(struct gpu, queues.levels[0].switches), BY_LEVEL,
	 .stride = sizeof(struct run_queue)},
	{0},
};

#undef AT
#define AT(member) METRIC_AT(struct metrics_input, member)

static const struct metric agent_metrics[] = {
	{"weir_scheduler_timers_total", "Timers of the scheduler that fired.", AT(timers.n)},
	{"weir_scheduler_late_seconds_total", "Sum of how late these timers fired.", METRIC_NS,
	 AT(timers.late)},
	{0},
};
static const struct metric kubernetes_metrics[] = {
	{"weir_api_server_connected", "1: the watch for pods is connected.", AT(connected)},
	{0},
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int r = strcmp(a->tenant->namespace_, b->tenant->namespace_);

	if (r == 0)
		r = strcmp(a->tenant->pod, b->tenant->pod);
	if (r == 0)
		r = strcmp(a->tenant->container, b->tenant->container);
	return r ? r : strcmp(a->usage.gpu->id, b->usage.gpu->id);
}

static void add_row(struct row *sum, const struct row *more)
{
	usage_add(&sum->usage, &more->usage);
	if (more->slo)
		sum->slo = more->slo;
	if (more->compute_limit)
		sum->compute_limit = more->compute_limit;
	if (more->min_rate) {
		sum->min_rate = more->min_rate;
		sum->usage.rate.attained = more->usage.rate.attained;
		sum->usage.rate.missed = more->usage.rate.missed;
	}
}

static size_t merge_rows(struct row *rows, size_t n)
{
	size_t kept = 0;

	qsort(rows, n, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && compare_rows(&rows[kept - 1], &rows[i]) == 0)
			add_row(&rows[kept - 1], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static int collect_rows(struct tenants *tenants, struct row **rows_out, size_t *n_out)
{
	struct tenant *tenant;
	const struct usage *usage;
	size_t n = 0, i = 0;

	for (tenant = tenants->all; tenant; tenant = tenant->hh.next) {
		tenant_read(tenant);
		for (usage = tenant->usages; usage; usage = usage->next)
			n++;
	}
	struct row *rows = calloc(n + 1, sizeof(*rows));
	if (!rows)
		return error_origin(-ENOMEM);
	for (tenant = tenants->all; tenant; tenant = tenant->hh.next) {
		for (usage = tenant->usages; usage; usage = usage->next)
			rows[i++] = (struct row){.tenant = tenant,
						 .usage = *usage,
						 .slo = tenant->slo,
						 .compute_limit = tenant->compute_limit * 10000,
						 .min_rate = tenant->min_rate * 1000,
						 .level = tenant->level};
	}
	*n_out = merge_rows(rows, n);
	*rows_out = rows;
	return 0;
}

/* Metrics of an objective or a limit are only for containers that have one. */
static void mark_missing(struct row *row)
{
	struct objective *objective = &row->usage.objective;

	row->missed = objective->missed;
	if (!row->slo)
		row->slo = objective->starts = objective->late = row->missed = METRIC_NONE;
	if (!row->compute_limit)
		row->compute_limit = METRIC_NONE;
	if (row->compute_limit == METRIC_NONE && !row->usage.limit.used)
		row->usage.limit.used = row->usage.limit.throttled = METRIC_NONE;
	if (!row->usage.memory_limit)
		row->usage.memory_limit = METRIC_NONE;
}

static void mark_missing_rate(struct row *row)
{
	struct min_rate *rate = &row->usage.rate;
	bool known = row->min_rate && rate->attained != MIN_RATE_UNKNOWN;

	row->attained = known ? rate->attained * 1000 : METRIC_NONE;
	row->rate_missed = row->min_rate ? rate->missed : METRIC_NONE;
	if (!row->min_rate)
		row->min_rate = METRIC_NONE;
	if (row->min_rate == METRIC_NONE && !rate->time)
		rate->time = rate->missed_time = METRIC_NONE;
}

static void row_labels(FILE *out, const void *object)
{
	const struct row *row = object;

	metric_label(out, "namespace", row->tenant->namespace_);
	metric_label(out, ",pod", row->tenant->pod);
	metric_label(out, ",container", row->tenant->container);
	metric_label(out, ",gpu", row->usage.gpu->id);
}

static void gpu_labels(FILE *out, const void *object)
{
	metric_label(out, "gpu", ((const struct gpu *)object)->id);
}

static void write_gpus(FILE *out, const struct gpu *gpus)
{
	const struct metric_objects objects = {gpus, offsetof(struct gpu, hh.next), gpu_labels};

	metric_head(out, "weir_gpu_info", "The GPUs of this node.");
	for (const struct gpu *gpu = gpus; gpu; gpu = gpu->hh.next) {
		fprintf(out, "weir_gpu_info{gpu=\"%s\"", gpu->id);
		metric_label(out, ",name", gpu->name);
		fputs("} 1\n", out);
	}
	metric_write_table(out, gpu_metrics, &objects);
}

static void write_agent(FILE *out, const struct metrics_input *input)
{
	metric_info(out, "weir_build_info", "The agent's version.", "version", WEIR_VERSION);
	metric_info(out, "weir_policy_info", "The policy in force.", "policy", input->policy);
	metric_write_table(out, agent_metrics, METRIC_OBJECT(input));
	if (input->kubernetes)
		metric_write_table(out, kubernetes_metrics, METRIC_OBJECT(input));
}

int metrics_write(FILE *out, const struct metrics_input *input)
{
	cleanup(freep) struct row *rows = NULL;
	size_t n = 0;
	int r = collect_rows(input->tenants, &rows, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		mark_missing(&rows[i]);
		mark_missing_rate(&rows[i]);
		rows[i].next = i + 1 < n ? &rows[i + 1] : NULL;
	}
	const struct metric_objects containers = {n ? rows : NULL, offsetof(struct row, next),
						  row_labels};
	write_agent(out, input);
	write_gpus(out, input->gpus);
	metric_write_table(out, container_metrics, &containers);
	return ferror(out) ? -EIO : 0;
}
