#include "mps/mps.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "mps/mps-server.h"
#include "common/metric.h"

#include "weir/base.h"

static struct mps_daemon *find(struct mps *mps, const char *gpu, uint8_t level)
{
	struct mps_daemon *daemon = mps->daemons;

	while (daemon && (daemon->request.level != level || strcmp(daemon->request.gpu, gpu) != 0))
		daemon = daemon->next;
	return daemon;
}

static struct mps_daemon *add(struct mps *mps, const char *gpu, uint8_t level)
{
	struct mps_daemon *daemon = calloc(1, sizeof(*daemon));

	if (!daemon)
		return NULL;
	daemon->mps = mps;
	daemon->request.level = level;
	snprintf(daemon->request.gpu, sizeof(daemon->request.gpu), "%s", gpu);
	snprintf(daemon->name, sizeof(daemon->name), level == MPS_ALL ? "%s" : "%s, level %u", gpu,
		 level);
	mps_folder(daemon->folder, mps->config->dir, &daemon->request);
	if (mps_daemon_init(daemon) < 0) {
		free(daemon);
		return NULL;
	}
	daemon->next = mps->daemons;
	mps->daemons = daemon;
	return daemon;
}

/* Takes over a daemon that an earlier agent started. mps_want() soon says whether it goes on. */
static void adopt(struct mps *mps, const char *gpu, uint8_t level)
{
	struct mps_request request = {.level = level};
	char folder[MPS_PATH_MAX];

	snprintf(request.gpu, sizeof(request.gpu), "%s", gpu);
	mps_folder(folder, mps->config->dir, &request);
	struct mps_daemon *daemon = access(folder, F_OK) == 0 ? add(mps, gpu, level) : NULL;
	if (daemon)
		mps_daemon_adopt(daemon);
}

static void up(struct mps *mps, struct mps_daemon *daemon)
{
	if (mps->listener)
		mps->listener->up(mps, daemon);
}

static void looked(struct mps *mps, struct mps_daemon *daemon)
{
	mps_servers_look(daemon);
	if (mps->listener)
		mps->listener->looked(mps, daemon);
}

int mps_init(struct mps *mps, struct loop *loop, const struct config_mps *config)
{
	*mps = (struct mps){.loop = loop, .config = config, .heard = {up, looked}};
	DIR *dir = opendir(config->dir);
	uint8_t uuid[16];

	if (!dir)
		return 0;
	mps_program_find(&mps->program, config);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (!gpu_id_parse(entry->d_name, uuid))
			continue;
		adopt(mps, entry->d_name, MPS_ALL);
		for (uint8_t level = 0; level < WEIR_LEVELS; level++)
			adopt(mps, entry->d_name, level);
	}
	closedir(dir);
	return 0;
}

void mps_deinit(struct mps *mps)
{
	struct mps_daemon *daemon;

	while ((daemon = mps->daemons)) {
		mps->daemons = daemon->next;
		mps_servers_deinit(daemon);
		mps_daemon_deinit(daemon);
		free(daemon);
	}
}

void mps_want(struct mps *mps, const char *gpu, bool wanted)
{
	struct mps_daemon *daemon = find(mps, gpu, MPS_ALL);

	if (!daemon && wanted)
		daemon = add(mps, gpu, MPS_ALL);
	if (daemon)
		mps_daemon_want(daemon, wanted);
}

/* Its server may come as soon as it runs. */
static void want_level(struct mps_daemon *daemon, struct gpu *gpu)
{
	daemon->gpu = gpu;
	if (!daemon->socket.path && mps_daemon_make_folders(daemon) == 0)
		mps_servers_init(daemon);
	mps_daemon_want(daemon, true);
}

struct mps_daemon *mps_want_level(struct mps *mps, struct gpu *gpu, uint8_t level)
{
	struct mps_daemon *daemon = find(mps, gpu->id, level);

	if (!daemon)
		daemon = add(mps, gpu->id, level);
	if (daemon)
		want_level(daemon, gpu);
	return daemon;
}

void mps_allow_levels(struct mps *mps, struct gpu *gpu, bool allowed)
{
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		struct mps_daemon *daemon = find(mps, gpu->id, level);
		if (daemon && allowed && daemon->state == MPS_DRAINING)
			want_level(daemon, gpu);
		else if (daemon && !allowed && daemon->state != MPS_ENDED)
			mps_daemon_want(daemon, false);
	}
}

bool mps_complete(const struct mps *mps)
{
	for (const struct mps_daemon *daemon = mps->daemons; daemon; daemon = daemon->next)
		if (daemon->wanted && daemon->state != MPS_UP)
			return false;
	return true;
}

static uint64_t is_up(const void *object)
{
	return ((const struct mps_daemon *)object)->state == MPS_UP;
}

static uint64_t of_level(const struct mps_daemon *daemon, uint64_t value)
{
	return daemon->request.level == MPS_ALL ? METRIC_NONE : value;
}

static uint64_t clients(const void *object)
{
	const struct mps_daemon *daemon = object;

	return of_level(daemon, daemon->n_clients);
}

static uint64_t foreign(const void *object)
{
	const struct mps_daemon *daemon = object;

	return of_level(daemon, daemon->foreign);
}

#define AT(member) METRIC_AT(struct mps_daemon, member)

static const struct metric mps_metrics[] = {
	{"weir_mps_wanted",
	 "1: the GPU's mode has this daemon; 0: it stops when its last client leaves.", AT(wanted)},
	{"weir_mps_up", "1: the GPU's MPS daemon answers.", .get = is_up},
	{"weir_mps_faulted",
	 "1: after a fault, the MPS server waits until the clients involved are gone.",
	 AT(faulted)},
	{"weir_mps_starts_total", "Starts of the GPU's MPS daemon.", AT(starts)},
	{"weir_mps_deaths_total", "Times that the daemon died unexpectedly.", AT(deaths)},
	{"weir_mps_faults_total", "Faults that ended the work of all clients.", AT(faults)},
	{"weir_mps_clients", "Mode mps-per-level: clients of the level's server.", .get = clients},
	{"weir_mps_foreign_clients_total",
	 "Mode mps-per-level: processes seen in the server of a level that is not theirs.",
	 .get = foreign},
	{0},
};

static void daemon_labels(FILE *out, const void *object)
{
	const struct mps_request *request = &((const struct mps_daemon *)object)->request;

	metric_label(out, "gpu", request->gpu);
	if (request->level != MPS_ALL)
		fprintf(out, ",level=\"%s\"", config_level_name(request->level));
}

void mps_metrics_write(FILE *out, const struct mps *mps)
{
	const struct metric_objects daemons = {mps->daemons, offsetof(struct mps_daemon, next),
					       daemon_labels};

	metric_write_table(out, mps_metrics, &daemons);
}
