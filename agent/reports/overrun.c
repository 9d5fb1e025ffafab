#include "reports/overrun.h"

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/log.h"

#define STAYS_NS (10 * NS_PER_MS) /* others end sooner by themselves */

static bool is_blocked(const struct client *client)
{
	const struct gpu *gpu = client->gpu;

	return client->level < WEIR_DEMAND_LEVELS && gpu->open &&
	       atomic_load(&gpu->region.pages[client->level].demand->word);
}

/* The hardware stops the client, or leaves it short slices beside higher levels. */
static bool is_out_of_the_way(const struct client *client)
{
	const struct gpu *gpu = client->gpu;
	const struct channels_client *server = gpu->servers[client->level];
	bool works =
		preemption_works(client) || (server && gpu->self_test.state == SELF_TEST_WORKS);

	return works &&
	       (client->channels.stopped || (server && server->stopped) || is_blocked(client));
}

uint64_t overrun_staying(const struct client *client)
{
	uint64_t said = atomic_load(&client->pages.status->overrun);

	return said >= STAYS_NS && client->account.outstanding && !is_out_of_the_way(client) ? said
											     : 0;
}

/* What the client says is no more than the time that has passed. */
static void count(struct client *client, uint64_t now)
{
	struct overrun *overrun = &client->overrun;
	uint64_t said = atomic_load(&client->pages.status->overrun);
	uint64_t passed = overrun->looked ? now - overrun->looked : 0;

	if (said < overrun->said || !said)
		*overrun = (struct overrun){0};
	if (said && !is_out_of_the_way(client))
		overrun->time += smaller(said - overrun->said, passed);
	overrun->said = said;
	overrun->looked = now;
}

/* The driver tells who ran since @since, and this process did not. Clients that run at the same
 * time may all count as their server. */
static bool is_denied(struct client *client, uint64_t since)
{
	struct process_sample sample;

	if (client_is_concurrent(client) || !process_use_tells(&client->gpu->use, since))
		return false;
	return !process_use_find(&client->gpu->use, client->pid, &sample) || sample.end <= since ||
	       !sample.percent;
}

static void report(struct client *client)
{
	struct usage *usage = tenant_usage(client->tenant, client->gpu);

	client->overrun.told = true;
	if (usage)
		usage->quotas.overruns++;
	log_limited(LOG_WARNING, 1,
		    WHOSE
		    "client %llu, pid %d: its kernel has not left the GPU for %.0f s, although "
		    "others wait",
		    WHO(client->tenant), (unsigned long long)client->number, (int)client->pid,
		    (double)client->overrun.time / 1e9);
}

static void look(struct client *client, const struct config_overruns *config, uint64_t now)
{
	struct overrun *overrun = &client->overrun;

	count(client, now);
	if (overrun->time < config->after * NS_PER_S)
		return;
	/* The answer is there at the next look. */
	uint64_t asked = overrun->asked;
	process_use_ask(&client->gpu->use, now);
	overrun->asked = now;
	if (!asked || is_denied(client, asked))
		return;
	if (!overrun->told)
		report(client);
	if (config->action == OVERRUNS_KILL)
		client_end(client, ENDING_OVERRUN);
}

void overrun_look(struct gpu *gpu, const struct config_overruns *config, uint64_t now)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (config->action == OVERRUNS_IGNORE)
			client->overrun = (struct overrun){0};
		else
			look(client, config, now);
	}
}

void overrun_tell(struct events *events, struct pods *pods, const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct usage *usage = tenant_usage(client->tenant, client->gpu);
		const struct pod *pod = pods_of(pods, &client->tenant->identity);
		if (!usage || !pod)
			continue;
		if (usage->overruns_told != usage->quotas.overruns)
			events_tell(events, pod, EVENT_WARNING, "KernelOverruns",
				    "container %s: a kernel does not leave %s although others "
				    "wait for it, %llu times so far",
				    client->tenant->container, gpu->id,
				    (unsigned long long)usage->quotas.overruns);
		usage->overruns_told = usage->quotas.overruns;
	}
}
