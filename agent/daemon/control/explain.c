#include "daemon/control/explain.h"

#include <string.h>

#include "common/text.h"
#include "config/config.h"
#include "kubernetes/pods.h"
#include "policy/yield.h"
#include "reports/overrun.h"
#include "scheduler/min-rates.h"
#include "scheduler/preemption.h"
#include "scheduler/sms.h"

#include "weir/base.h"

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void explain_request(FILE *out, const struct explain_input *input, const struct pod *pod)
{
	const char *resource = input->report->config->kubernetes.names.share;
	uint32_t n = pod->request;

	if (!n)
		fprintf(out, "asks for no %s: it has no part of a GPU\n", resource);
	else if (n < 100)
		fprintf(out, "asks for %u of the 100 %s of one GPU\n", n, resource);
	else if (n % 100)
		fprintf(out,
			"asks for %u %s, which no node has: up to 99 of one GPU, or whole GPUs by "
			"100\n",
			n, resource);
	else
		fprintf(out, "asks for %u whole GPU%s, which it uses without Weir\n", n / 100,
			n == 100 ? "" : "s");
}

static void explain_problems(FILE *out, const struct explain_input *input, const struct pod *pod)
{
	struct pod_problems problems;

	pod_report_check(&input->report->problems, &problems, pod);
	for (size_t i = 0; i < problems.n; i++)
		fprintf(out, "%s %s\n", problems.all[i].subject, problems.all[i].message);
}

/* The other clients for which @client waits now, by level. */
static unsigned count_above(const struct client *client)
{
	unsigned n = 0;

	for (const struct client *other = client->gpu->clients; other; other = other->gpu_next)
		n += other->level > client->level && other->account.outstanding > 0;
	return n;
}

static void explain_above(FILE *out, const struct client *client)
{
	unsigned told = 0;

	fprintf(out, "    waits for %u client%s of higher levels with work:", count_above(client),
		count_above(client) == 1 ? "" : "s");
	for (const struct client *other = client->gpu->clients; other && told < 4;
	     other = other->gpu_next) {
		if (other->level <= client->level || !other->account.outstanding)
			continue;
		fprintf(out, "%s %s/%s (%s)", told++ ? "," : "", other->tenant->namespace_,
			other->tenant->pod, config_level_name(other->level));
	}
	fputc('\n', out);
}

static void explain_sms(FILE *out, const struct client *client)
{
	if (sms_needed(client) == SMS_UNKNOWN)
		return;
	fprintf(out, "    its work needs %llu SMs; higher levels leave it %llu\n",
		(unsigned long long)sms_needed(client), (unsigned long long)sms_left(client));
	if (sms_given(client) < atomic_load(&client->pages.status->gpu_sms))
		fprintf(out,
			"    MPS gives it %llu SMs: its kernels run on while higher levels need no "
			"more than the others\n",
			(unsigned long long)sms_given(client));
}

/* What it has found out by itself. */
static void explain_found(FILE *out, const struct client *client)
{
	static const char *const texts[] = {
		[WEIR_YIELDS_UNKNOWN] = "the whole GPU: it is not known whether less will do",
		[WEIR_YIELDS_PLACES] =
			"the SMs that it needs, and for short kernels places of blocks",
		[WEIR_YIELDS_SMS] = "the SMs that it needs",
		[WEIR_YIELDS_WHOLE] = "the whole GPU: with less it is slower",
	};
	const struct weir_status_page *status = client->pages.status;
	uint32_t found = atomic_load(&status->yield_found);
	uint64_t tried = atomic_load(&status->yield_tried);

	if (client->tenant->yield != YIELD_AUTO || sms_needed(client) == SMS_UNKNOWN)
		return;
	fprintf(out, "    lower levels leave it %s\n",
		texts[found < countof(texts) ? found : WEIR_YIELDS_UNKNOWN]);
	if (tried)
		fprintf(out,
			"    it has tried less with %llu launches, which lost %.3f s at most\n",
			(unsigned long long)tried, seconds(atomic_load(&status->yield_lost)));
}

static void explain_client(FILE *out, const struct client *client)
{
	const uint64_t *total = client->account.own.total;
	const struct weir_control_page *control = client->pages.control;

	fprintf(out,
		"  process %d on %s: %llu launches, %.1f s of GPU time, waited %.1f s in %llu "
		"waits, %llu evictions\n",
		(int)client->pid, client->gpu->id, (unsigned long long)total[ACCOUNT_LAUNCHES],
		seconds(total[ACCOUNT_GPU_TIME]), seconds(total[ACCOUNT_WAIT_TIME]),
		(unsigned long long)total[ACCOUNT_WAITS],
		(unsigned long long)total[ACCOUNT_EVICTIONS]);
	if (total[ACCOUNT_BLOCKS_SAVED] || total[ACCOUNT_BLOCKS_DRAINED])
		fprintf(out, "    evicted inside blocks: %llu saved (%.1f MiB), %llu finished\n",
			(unsigned long long)total[ACCOUNT_BLOCKS_SAVED],
			(double)total[ACCOUNT_BYTES_SAVED] / (1 << 20),
			(unsigned long long)total[ACCOUNT_BLOCKS_DRAINED]);
	if (client->over_limit)
		fputs("    is over the compute limit of its container\n", out);
	if (client->leaves)
		fputs("    is ahead of its minimum rate: others may run\n", out);
	else if (client->kept_out)
		fputs("    is held: another container must get its minimum rate first\n", out);
	if (client->tenant->compute_limit && !preemption_works(client))
		fputs("    has no hardware preemption: gates uphold its compute limit, between "
		      "kernels\n",
		      out);
	if (overrun_is_told(client))
		fprintf(out,
			"    its kernel has not left the GPU for %.0f s, although others wait%s\n",
			seconds(client->overrun.time),
			preemption_works(client) ? ": the hardware stops it meanwhile"
						 : ", and no hardware preemption can stop it");
	else if (overrun_staying(client))
		fprintf(out,
			"    its kernel runs natively and keeps the GPU to its end: %.2f s so far, "
			"although others wait\n",
			seconds(overrun_staying(client)));
	explain_sms(out, client);
	explain_found(out, client);
	if (client->held_until)
		fprintf(out, "    is held by hand for another %.0f s (weirctl release)\n",
			seconds(scheduler_hold_left(client, loop_now())));
	else if (client->closed_ahead)
		fputs("    pauses; its next work waits for its turn, as a client of its level has "
		      "a "
		      "tight latency objective\n",
		      out);
	else if (atomic_load(&control->hold) && !client_is_out(client))
		fputs("    is held: it is another client's turn among those of its level\n", out);
	if (client->account.outstanding && count_above(client))
		explain_above(out, client);
	if (client->account.tuning)
		fprintf(out, "    %u kernels are still being tuned\n", client->account.tuning);
}

static void explain_min_rate(FILE *out, const struct tenant *tenant, const struct usage *usage)
{
	char wanted[MIN_RATE_TEXT_MAX], attained[MIN_RATE_TEXT_MAX], sum[MIN_RATE_TEXT_MAX];
	const struct min_rate *rate = &usage->rate;
	const char *why = min_rate_why(rate->hindered);

	fprintf(out, "  minimum rate %s of its speed alone%s: ",
		min_rate_format(tenant->min_rate, wanted),
		tenant->min_rate_holds ? "" : ", against lower levels only");
	if (rate->attained == MIN_RATE_UNKNOWN)
		fputs("not known yet what it has", out);
	else
		fprintf(out, "it has %s", min_rate_format(rate->attained, attained));
	if (rate->missed)
		fprintf(out, "; it is missed: %s", why ? why : MIN_RATE_NO_CAUSE);
	fputc('\n', out);
	if (min_rates_sum(usage->gpu) > MIN_RATE_ONE)
		fprintf(out, "    minimum rates on %s add up to %s: not all can be had\n",
			usage->gpu->id, min_rate_format(min_rates_sum(usage->gpu), sum));
}

static void explain_usage(FILE *out, const struct tenant *tenant, const struct usage *usage)
{
	if (usage->memory_limit)
		fprintf(out, "  memory: %llu of %llu MiB\n",
			(unsigned long long)(usage->memory_reserved >> 20),
			(unsigned long long)(usage->memory_limit >> 20));
	if (usage->memory_limit && usage->memory_reserved >= usage->memory_limit)
		fputs("    at its limit: it gets no more until it has freed some\n", out);
	if (usage->memory_waits.waiting)
		fprintf(out, "  %llu allocations wait for others to free memory: the GPU is full\n",
			(unsigned long long)usage->memory_waits.waiting);
	if (usage->quotas.refused)
		fprintf(out, "  refused %llu times: too many clients or memory accounts\n",
			(unsigned long long)usage->quotas.refused);
	if (tenant->compute_limit)
		fprintf(out,
			"  compute limit %u %% of the GPU's time: used %.1f s, was stopped for "
			"%.1f s\n",
			tenant->compute_limit, seconds(usage->limit.used),
			seconds(usage->limit.throttled));
	if (tenant->min_rate)
		explain_min_rate(out, tenant, usage);
	if (tenant->slo)
		fprintf(out, "  objective %.4g ms: %llu of %llu starts were late%s\n",
			(double)tenant->slo / 1e6, (unsigned long long)usage->objective.late,
			(unsigned long long)usage->objective.starts,
			usage->objective.missed ? ", it is missed" : "");
}

static void explain_tenant(FILE *out, struct tenant *tenant)
{
	const struct client *client;
	char text[YIELD_TEXT_MAX];

	tenant_read(tenant);
	fprintf(out, "container %s: level %s, by %s; weight %u\n", tenant->container,
		config_level_name(tenant->level), tenant->reason, tenant->share);
	if (tenant->yield != YIELD_WHOLE && tenant->yield != YIELD_AUTO)
		fprintf(out, "  asks lower levels to leave it the SMs that it needs: %s\n",
			yield_format(tenant->yield, text));
	for (const struct usage *usage = tenant->usages; usage; usage = usage->next)
		explain_usage(out, tenant, usage);
	for (client = tenant->clients; client; client = client->tenant_next)
		explain_client(out, client);
	if (!tenant->clients)
		fputs("  no process of it uses a GPU now\n", out);
}

/* Of all clients of the GPUs, so that those above show their work. */
static void read_all(const struct decider *decider)
{
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next)
		tenant_read(tenant);
}

/* The container was restarted: its name belongs to a later one of the pod. */
static bool is_replaced(struct decider *decider, const struct tenant *tenant, const struct pod *pod)
{
	for (struct tenant *later = tenant->hh.next; later && !tenant->clients;
	     later = later->hh.next)
		if (decider_pod(decider, later) == pod &&
		    strcmp(later->container, tenant->container) == 0)
			return true;
	return false;
}

static void explain_tenants(FILE *out, const struct explain_input *input, const struct pod *pod)
{
	struct decider *decider = input->decider;
	unsigned n = 0;

	decider_read_memory(decider);
	read_all(decider);
	for (struct tenant *tenant = decider->tenants->all; tenant; tenant = tenant->hh.next) {
		if (decider_pod(decider, tenant) != pod || is_replaced(decider, tenant, pod))
			continue;
		explain_tenant(out, tenant);
		n++;
	}
	if (!n && *pod->node && pod->phase == POD_ALIVE && pod->least_share &&
	    pod->least_share < 100)
		fputs("no process of it has called CUDA through libweir yet\n", out);
}

static void explain_state(FILE *out, const struct explain_input *input, const struct pod *pod)
{
	const char *resource = input->report->config->kubernetes.names.share;
	static const char *const phases[] = {[POD_ALIVE] = "is on this node",
					     [POD_SUCCEEDED] = "has ended",
					     [POD_FAILED] = "has failed"};

	const char *node = input->report->config->kubernetes.node;

	if (!*pod->node && pod->phase == POD_ALIVE)
		fprintf(out, "pod %s/%s is pending: %s %s\n", pod->namespace_, pod->name,
			*pod->status_reason ? pod->status_reason
					    : "the scheduler has not looked at it",
			pod->status_message);
	else if (*pod->node && strcmp(pod->node, node) != 0)
		fprintf(out,
			"pod %s/%s is on node %s: ask the agent there, as `kubectl weir "
			"explain` does\n",
			pod->namespace_, pod->name, pod->node);
	else if (pod_refusal(pod, resource))
		fprintf(out, "pod %s/%s was refused by this node\n", pod->namespace_, pod->name);
	else
		fprintf(out, "pod %s/%s %s%s%s\n", pod->namespace_, pod->name, phases[pod->phase],
			*pod->status_reason ? ": " : "", pod->status_reason);
}

static void explain_pod(FILE *out, const struct explain_input *input, const struct pod *pod)
{
	explain_state(out, input, pod);
	explain_request(out, input, pod);
	explain_problems(out, input, pod);
	if (!*pod->node || pod_refusal(pod, input->report->config->kubernetes.names.share) ||
	    waiting_find(&input->report->placement.waiting, pod))
		placement_explain(out, &input->report->placement, pod);
	explain_tenants(out, input, pod);
	if (*input->config_mistake)
		fprintf(out,
			"this agent's configuration has a mistake, and the one from before stays "
			"in force: %s\n",
			input->config_mistake);
}

/* A pod by `NAMESPACE/NAME`, or by its name if one namespace has it. */
struct wanted_pod {
	const char *name, *slash;
	const struct pod *found;
	unsigned n;
};

static void compare_pod(void *userdata, const struct pod *pod)
{
	struct wanted_pod *wanted = userdata;
	const char *name = wanted->slash ? wanted->slash + 1 : wanted->name;
	size_t n = wanted->slash ? (size_t)(wanted->slash - wanted->name) : 0;

	if (strcmp(pod->name, name) != 0)
		return;
	if (n && (strncmp(pod->namespace_, wanted->name, n) != 0 || pod->namespace_[n]))
		return;
	wanted->n++;
	wanted->found = pod;
}

/* A pod of another node, or of none: of namespace `default` if none is named. */
static const char *fetch_pod(const struct explain_input *input, struct wanted_pod *wanted,
			     cJSON *answer)
{
	char namespace_[64] = "default";
	const char *name = wanted->slash ? wanted->slash + 1 : wanted->name;

	if (wanted->slash)
		snprintf(namespace_, sizeof(namespace_), "%.*s",
			 (int)(wanted->slash - wanted->name), wanted->name);
	switch (report_fetch(input->report, namespace_, name, &wanted->found)) {
	case POD_FETCH_RUNNING:
		cJSON_AddTrueToObject(answer, "fetching");
		return NULL;
	case POD_FETCH_FOUND:
		return NULL;
	case POD_FETCH_NONE:
		return "no such pod";
	default:
		return "no such pod on this node, and the API server does not answer";
	}
}

static const char *write_explanation(const struct explain_input *input, const struct pod *pod,
				     cJSON *answer)
{
	cleanup(freep) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return "no memory";
	explain_pod(out, input, pod);
	if (fclose(out) != 0)
		return "no memory";
	text_mend(text);
	cJSON_AddStringToObject(answer, "text", text);
	return NULL;
}

const char *explain_answer(const struct explain_input *input, const char *name, cJSON *answer)
{
	struct wanted_pod wanted = {.name = name};
	const char *wrong = NULL;

	if (!name)
		return "expected the name of a pod";
	if (!input->decider->pods)
		return "this agent knows no pods";
	wanted.slash = strchr(name, '/');
	pods_each(input->decider->pods, compare_pod, &wanted);
	if (wanted.n > 1)
		return "several namespaces have a pod of this name: NAMESPACE/NAME";
	if (!wanted.n)
		wrong = fetch_pod(input, &wanted, answer);
	return wrong || !wanted.found ? wrong : write_explanation(input, wanted.found, answer);
}
