#include "metrics/metrics.h"

#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "common/text.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/transform.h"

/* One family for each counter of an account; the starts are told with objectives. */
enum unit { UNIT_ONE, UNIT_NS, UNIT_MILLIONTHS };

static const struct {
	const char *name, *help;
	enum unit unit;
} families[ACCOUNT_COUNTERS] = {
	[ACCOUNT_LAUNCHES] = {"weir_launches_total", "Kernels and graphs launched.", UNIT_ONE},
	[ACCOUNT_GPU_TIME] = {"weir_gpu_seconds_total", "Predicted GPU time of what was launched.",
			      UNIT_NS},
	[ACCOUNT_GATES] = {"weir_gates_total", "Gates put into streams.", UNIT_ONE},
	[ACCOUNT_GATES_CLOSED] = {"weir_gates_closed_total", "Gates closed when they were put.",
				  UNIT_ONE},
	[ACCOUNT_WAITS] = {"weir_waits_total", "Times that work began to be held back.", UNIT_ONE},
	[ACCOUNT_WAIT_TIME] = {"weir_wait_seconds_total", "Time with work held back.", UNIT_NS},
	[ACCOUNT_EVICTIONS] = {"weir_evictions_total", "Running kernels that left early.",
			       UNIT_ONE},
	[ACCOUNT_DEMAND_TIME] = {"weir_demand_seconds_total",
				 "Time with work outstanding, running or held.", UNIT_NS},
	[ACCOUNT_SPECULATIVE] =
		{"weir_early_demand_total",
		 "Times that demand was shown while a copy to the GPU went before a launch.",
		 UNIT_ONE},
	[ACCOUNT_SPECULATIVE_MISSES] = {"weir_early_demand_vain_total",
					"Of these, times that no launch came.", UNIT_ONE},
	[ACCOUNT_SPECULATIVE_TIME] = {"weir_early_demand_seconds_total",
				      "Time of such demand before its launch.", UNIT_NS},
	[ACCOUNT_PREDICTIONS] = {"weir_predictions_total",
				 "Launches measured whose time had been predicted.", UNIT_ONE},
	[ACCOUNT_PREDICTION_ERROR] =
		{"weir_prediction_error_total",
		 "Sum of how far they were off, relative to what was measured.", UNIT_MILLIONTHS},
};

/* What one container did on one GPU. Containers that people know by the same name, as after a
 * restart of one, are one row. */
struct row {
	const struct tenant *tenant;
	const struct gpu *gpu;
	struct account account;
	struct objective objective;
	uint64_t slo, held, tuning;
	uint64_t memory_limit, memory_reserved;
	bool active;
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int r = strcmp(a->tenant->namespace_, b->tenant->namespace_);

	if (r == 0)
		r = strcmp(a->tenant->pod, b->tenant->pod);
	if (r == 0)
		r = strcmp(a->tenant->container, b->tenant->container);
	return r ? r : strcmp(a->gpu->id, b->gpu->id);
}

static void add_row(struct row *sum, const struct row *more)
{
	account_add(&sum->account, &more->account);
	objective_add(&sum->objective, &more->objective);
	sum->held += more->held;
	sum->tuning += more->tuning;
	sum->active |= more->active;
	sum->memory_reserved += more->memory_reserved;
	if (more->memory_limit)
		sum->memory_limit = more->memory_limit;
	if (more->slo)
		sum->slo = more->slo;
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
			rows[i++] = (struct row){
				.tenant = tenant,
				.gpu = usage->gpu,
				.account = usage->account,
				.objective = usage->objective,
				.slo = tenant->slo,
				.held = usage->held,
				.active = usage->active,
				.tuning = usage->tuning,
				.memory_limit = usage->memory_limit,
				.memory_reserved = usage->memory_reserved,
			};
	}
	*n_out = merge_rows(rows, n);
	*rows_out = rows;
	return 0;
}

void metrics_label(FILE *out, const char *name, const char *value)
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

void metrics_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_nanoseconds(FILE *out, uint64_t ns)
{
	fprintf(out, "%llu.%09llu\n", (unsigned long long)(ns / 1000000000),
		(unsigned long long)(ns % 1000000000));
}

static void write_labels(FILE *out, const char *family, const struct row *row)
{
	fprintf(out, "%s{", family);
	metrics_label(out, "namespace", row->tenant->namespace_);
	metrics_label(out, ",pod", row->tenant->pod);
	metrics_label(out, ",container", row->tenant->container);
	metrics_label(out, ",gpu", row->gpu->id);
}

static void write_row(FILE *out, const char *family, const struct row *row, enum unit unit,
		      uint64_t value)
{
	write_labels(out, family, row);
	fputs("} ", out);
	if (unit == UNIT_NS)
		metrics_nanoseconds(out, value);
	else if (unit == UNIT_MILLIONTHS)
		fprintf(out, "%llu.%06llu\n", (unsigned long long)(value / 1000000),
			(unsigned long long)(value % 1000000));
	else
		fprintf(out, "%llu\n", (unsigned long long)value);
}

static void write_family(FILE *out, int counter, const struct row *rows, size_t n)
{
	if (!families[counter].name)
		return;
	metrics_head(out, families[counter].name, "counter", families[counter].help);
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, families[counter].name, row, families[counter].unit,
			  row->account.total[counter]);
}

/* Only forms that were used: most containers have one or two. */
static void write_forms(FILE *out, const char *family, const char *help, int first,
			const struct row *rows, size_t n)
{
	metrics_head(out, family, "counter", help);
	for (const struct row *row = rows; row < rows + n; row++) {
		for (int form = 0; form < WEIR_FORM_COUNT; form++) {
			uint64_t value = row->account.total[first + form];
			if (!value)
				continue;
			write_labels(out, family, row);
			fprintf(out, ",form=\"%s\"} %llu\n", weir_form_name((enum weir_form)form),
				(unsigned long long)value);
		}
	}
}

/* Why somebody waits: which level it has, whether it wants to run, and how long its equals were in
 * the way. */
static void write_standing(FILE *out, const struct row *rows, size_t n)
{
	metrics_head(out, "weir_container_level", "gauge", "Level of the container, 0 to 3.");
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, "weir_container_level", row, UNIT_ONE, row->tenant->level);
	metrics_head(out, "weir_demands", "gauge", "1: it has work outstanding.");
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, "weir_demands", row, UNIT_ONE, row->active);
	metrics_head(out, "weir_held_seconds_total", "counter",
		     "Time that its clients were held for equals, or by hand.");
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, "weir_held_seconds_total", row, UNIT_NS, row->held);
	metrics_head(out, "weir_kernels_comparing", "gauge",
		     "Kernels whose form is being made, or compared with the native one.");
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, "weir_kernels_comparing", row, UNIT_ONE, row->tuning);
	write_forms(out, "weir_form_launches_total",
		    "Kernels launched in forms that leave, by form.", ACCOUNT_FORM_LAUNCHES, rows,
		    n);
	write_forms(out, "weir_form_evictions_total", "Running kernels that left early, by form.",
		    ACCOUNT_FORM_EVICTIONS, rows, n);
}

/* Only of containers that have an objective. */
static void write_objectives(FILE *out, const struct row *rows, size_t n)
{
	static const struct {
		const char *name, *type, *help;
		enum unit unit;
	} wanted[] = {
		{"weir_latency_slo_seconds", "gauge", "Time from launch to start that is wanted.",
		 UNIT_NS},
		{"weir_latency_slo_starts_total", "counter", "Starts that it was asked of.",
		 UNIT_ONE},
		{"weir_latency_slo_late_total", "counter",
		 "Of these later, or no more than so many.", UNIT_ONE},
		{"weir_latency_slo_missed", "gauge",
		 "1: of the last 1000 starts or more over 0.1 % were late.", UNIT_ONE},
	};

	for (size_t family = 0; family < countof(wanted); family++) {
		metrics_head(out, wanted[family].name, wanted[family].type, wanted[family].help);
		for (const struct row *row = rows; row < rows + n; row++) {
			const struct objective *objective = &row->objective;
			const uint64_t values[countof(wanted)] = {
				row->slo, objective->starts, objective->late, objective->missed};
			if (row->slo)
				write_row(out, wanted[family].name, row, wanted[family].unit,
					  values[family]);
		}
	}
}

static void write_memory(FILE *out, const struct row *rows, size_t n)
{
	metrics_head(out, "weir_memory_reserved_bytes", "gauge",
		     "GPU memory that the container's processes have reserved.");
	for (const struct row *row = rows; row < rows + n; row++)
		write_row(out, "weir_memory_reserved_bytes", row, UNIT_ONE, row->memory_reserved);
	metrics_head(out, "weir_memory_limit_bytes", "gauge",
		     "What they may reserve, where there is a limit.");
	for (const struct row *row = rows; row < rows + n; row++)
		if (row->memory_limit)
			write_row(out, "weir_memory_limit_bytes", row, UNIT_ONE, row->memory_limit);
}

static void write_clients(FILE *out, const struct gpu *gpus)
{
	metrics_head(out, "weir_clients", "gauge", "Clients connected, by GPU and level.");
	for (const struct gpu *gpu = gpus; gpu; gpu = gpu->hh.next)
		for (uint8_t level = 0; level < WEIR_LEVELS; level++)
			fprintf(out, "weir_clients{gpu=\"%s\",level=\"%s\"} %u\n", gpu->id,
				config_level_name(level), gpu->n_level[level]);
}

static void write_turns(FILE *out, const struct gpu *gpus)
{
	metrics_head(out, "weir_turns_total", "counter",
		     "Times that an equal got the turn of another, by GPU and level.");
	for (const struct gpu *gpu = gpus; gpu; gpu = gpu->hh.next)
		for (uint8_t level = 0; level < WEIR_LEVELS; level++)
			fprintf(out, "weir_turns_total{gpu=\"%s\",level=\"%s\"} %llu\n", gpu->id,
				config_level_name(level),
				(unsigned long long)gpu->queues.levels[level].switches);
}

static void write_refused(FILE *out, const uint64_t *refused)
{
	metrics_head(out, "weir_refused_total", "counter", "Clients refused, by reason.");
	for (int reason = WEIR_REFUSED_VERSION; reason < HANDSHAKE_REFUSALS; reason++)
		fprintf(out, "weir_refused_total{reason=\"%s\"} %llu\n",
			handshake_refusal_name((enum weir_refusal)reason),
			(unsigned long long)refused[reason]);
}

static void write_gpus(FILE *out, const struct gpu *gpus)
{
	metrics_head(out, "weir_gpu_info", "gauge", "The GPUs of this node.");
	for (const struct gpu *gpu = gpus; gpu; gpu = gpu->hh.next) {
		fprintf(out, "weir_gpu_info{gpu=\"%s\"", gpu->id);
		metrics_label(out, ",name", gpu->name);
		fputs("} 1\n", out);
	}
}

static void write_agent(FILE *out, const struct metrics_input *input)
{
	metrics_head(out, "weir_build_info", "gauge", "The agent's version.");
	fputs("weir_build_info{version=\"" WEIR_VERSION "\"} 1\n", out);
	metrics_head(out, "weir_policy_info", "gauge", "The policy in force.");
	fprintf(out, "weir_policy_info{policy=\"%s\"} 1\n", input->policy);
	metrics_head(out, "weir_scheduler_timers_total", "counter",
		     "Times that the scheduler looked at its clients as planned.");
	fprintf(out, "weir_scheduler_timers_total %llu\n", (unsigned long long)input->timers.n);
	metrics_head(out, "weir_scheduler_late_seconds_total", "counter",
		     "How much later than planned that was, in all.");
	fputs("weir_scheduler_late_seconds_total ", out);
	metrics_nanoseconds(out, input->timers.late);
	if (!input->kubernetes)
		return;
	metrics_head(out, "weir_api_server_connected", "gauge", "1: the watch for pods stands.");
	fprintf(out, "weir_api_server_connected %d\n", input->connected);
}

int metrics_write(FILE *out, const struct metrics_input *input)
{
	cleanup(freep) struct row *rows = NULL;
	size_t n = 0;
	int r = collect_rows(input->tenants, &rows, &n);

	if (r < 0)
		return r;
	write_agent(out, input);
	write_gpus(out, input->gpus);
	write_clients(out, input->gpus);
	write_turns(out, input->gpus);
	write_refused(out, input->refused);
	for (int counter = 0; counter < ACCOUNT_COUNTERS; counter++)
		write_family(out, counter, rows, n);
	write_standing(out, rows, n);
	write_objectives(out, rows, n);
	write_memory(out, rows, n);
	return ferror(out) ? -EIO : 0;
}
