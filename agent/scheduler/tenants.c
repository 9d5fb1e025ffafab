#include "scheduler/tenants.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "common/hash.h"
#include "scheduler/sms.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

static void format_key(char *out, size_t size, const struct container_identity *identity)
{
	if (identity->in_pod)
		snprintf(out, size, "pod %s/%s", identity->pod_uid, identity->container_id);
	else
		snprintf(out, size, "%u %s", identity->uid, identity->cgroup);
}

/* The name until the API server sends a better one. */
static void name_it(struct tenant *tenant)
{
	const struct container_identity *identity = &tenant->identity;

	if (identity->in_pod) {
		snprintf(tenant->pod, sizeof(tenant->pod), "%s", identity->pod_uid);
		snprintf(tenant->container, sizeof(tenant->container), "%.12s",
			 identity->container_id);
	} else {
		snprintf(tenant->container, sizeof(tenant->container), "uid %u %s", identity->uid,
			 identity->cgroup);
	}
}

int tenants_enter(struct tenants *tenants, const struct container_identity *identity,
		  struct tenant **out)
{
	struct tenant *tenant;
	char key[sizeof(tenant->key)];

	format_key(key, sizeof(key), identity);
	HASH_FIND_STR(tenants->all, key, tenant);
	if (!tenant) {
		tenant = calloc(1, sizeof(*tenant));
		if (!tenant)
			return error_origin(-ENOMEM);
		memcpy(tenant->key, key, sizeof(key));
		tenant->identity = *identity;
		tenant->share = 100;
		name_it(tenant);
		HASH_ADD_STR(tenants->all, key, tenant);
	} else if (tenant->n_sessions == 0) {
		DL_DELETE(tenants->idle, tenant);
		tenants->n_idle--;
	}
	tenant->n_sessions++;
	*out = tenant;
	return 0;
}

void tenants_leave(struct tenants *tenants, struct tenant *tenant, uint64_t now)
{
	if (--tenant->n_sessions > 0)
		return;
	tenant->idle_since = now;
	DL_APPEND(tenants->idle, tenant);
	if (++tenants->n_idle > TENANTS_IDLE_MAX)
		tenants_forget(tenants, tenants->idle);
}

void tenants_prune(struct tenants *tenants, uint64_t now)
{
	while (tenants->idle && now - tenants->idle->idle_since > TENANTS_IDLE_NS)
		tenants_forget(tenants, tenants->idle);
}

void tenant_free_usages(struct tenant *tenant)
{
	while (tenant->usages) {
		struct usage *next = tenant->usages->next;
		free(tenant->usages);
		tenant->usages = next;
	}
}

static void tenant_free(struct tenant *tenant)
{
	tenant_free_usages(tenant);
	free(tenant);
}

/* Clients of a container may work at the same time. */
static void add_sms(struct usage *usage, uint64_t needed, uint64_t left)
{
	usage->sms_left = smaller(usage->sms_left, left);
	if (needed == SMS_UNKNOWN)
		return;
	usage->sms_needed = usage->sms_needed == SMS_UNKNOWN ? needed : usage->sms_needed + needed;
}

void usage_add(struct usage *sum, const struct usage *more)
{
	account_add(&sum->account, &more->account);
	objective_add(&sum->objective, &more->objective);
	sum->held += more->held;
	sum->limit.used += more->limit.used;
	sum->limit.throttled += more->limit.throttled;
	sum->rate.time += more->rate.time;
	sum->rate.missed_time += more->rate.missed_time;
	sum->tuning += more->tuning;
	sum->active |= more->active;
	sum->memory_reserved += more->memory_reserved;
	sum->memory_waits.n += more->memory_waits.n;
	sum->memory_waits.waited += more->memory_waits.waited;
	sum->memory_waits.waiting += more->memory_waits.waiting;
	add_sms(sum, more->sms_needed, more->sms_left);
	sum->quotas.clients += more->quotas.clients;
	sum->quotas.bits += more->quotas.bits;
	sum->quotas.accounts += more->quotas.accounts;
	sum->quotas.refused += more->quotas.refused;
	sum->quotas.compile_busy += more->quotas.compile_busy;
	sum->quotas.disobeyed += more->quotas.disobeyed;
	sum->quotas.overruns += more->quotas.overruns;
	for (unsigned reason = 0; reason < ENDING_REASONS; reason++)
		sum->quotas.killed[reason] += more->quotas.killed[reason];
	if (more->memory_limit)
		sum->memory_limit = more->memory_limit;
}

/* This adds what was read of the idle tenant, too. The heir's next reading replaces that. */
static void inherit(struct tenant *heir, const struct tenant *tenant)
{
	for (const struct usage *from = tenant->usages; from; from = from->next) {
		struct usage *to = tenant_usage(heir, from->gpu);
		if (to)
			usage_add(to, from);
	}
}

static bool same_name(const struct tenant *a, const struct tenant *b)
{
	return strcmp(a->namespace_, b->namespace_) == 0 && strcmp(a->pod, b->pod) == 0 &&
	       strcmp(a->container, b->container) == 0;
}

void tenants_forget(struct tenants *tenants, struct tenant *tenant)
{
	struct tenant *other;

	DL_DELETE(tenants->idle, tenant);
	tenants->n_idle--;
	assert(tenants->all);
	HASH_DEL(tenants->all, tenant);
	for (other = tenants->all; other && !same_name(other, tenant);)
		other = other->hh.next;
	if (other)
		inherit(other, tenant);
	tenant_free(tenant);
}

void tenants_deinit(struct tenants *tenants)
{
	hash_release(tenants->all, tenant_free);
	*tenants = (struct tenants){0};
}

struct usage *tenant_usage(struct tenant *tenant, struct gpu *gpu)
{
	struct usage *usage = tenant->usages;

	while (usage && usage->gpu != gpu)
		usage = usage->next;
	if (usage)
		return usage;
	usage = calloc(1, sizeof(*usage));
	if (!usage) {
		error_origin(-ENOMEM);
		return NULL;
	}
	*usage = (struct usage){.next = tenant->usages, .gpu = gpu};
	tenant->usages = usage;
	return usage;
}

void client_read(struct client *client)
{
	const struct tenant *tenant = client->tenant;
	struct usage *usage = tenant_usage(client->tenant, client->gpu);
	struct account before = client->account.own;

	if (!usage)
		return;
	account_read(&client->account, client->pages.status, &usage->account);
	if (tenant->slo)
		objective_count(&usage->objective, tenant->slo, &before, &client->account.own);
}

void client_count_hold(struct client *client, bool held, uint64_t now)
{
	struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (usage && client->held_since && now > client->held_since)
		usage->held += now - client->held_since;
	client->held_since = held ? now : 0;
}

static void judge(const struct tenant *tenant, struct usage *usage)
{
	if (!objective_judge(&usage->objective))
		return;
	log_line(usage->objective.missed ? LOG_WARNING : LOG_INFO, WHOSE "latency objective %s %s",
		 WHO(tenant), tenant->wanted_latency,
		 usage->objective.missed ? "is missed" : "is met again");
}

void tenant_read(struct tenant *tenant)
{
	struct client *client;
	struct usage *usage;

	for (usage = tenant->usages; usage; usage = usage->next) {
		usage->active = false;
		usage->tuning = 0;
		usage->sms_needed = usage->sms_left = SMS_UNKNOWN;
		usage->quotas.clients = usage->quotas.bits = 0;
	}
	for (client = tenant->clients; client; client = client->tenant_next) {
		client_read(client);
		usage = tenant_usage(tenant, client->gpu);
		if (!usage)
			continue;
		usage->active |= client->account.outstanding > 0;
		usage->tuning += client->account.tuning;
		add_sms(usage, sms_needed(client), sms_left(client));
		usage->quotas.clients++;
		usage->quotas.bits += client->bit != WEIR_BIT_SHARED;
	}
	for (usage = tenant->usages; usage && tenant->slo; usage = usage->next)
		judge(tenant, usage);
}
