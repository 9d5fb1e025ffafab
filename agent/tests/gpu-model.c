#include "gpu-model.h"

#include <string.h>

#include "weir/base.h"

#define STEP   100000ull
#define REPORT (5 * MS)
#define BEGIN  (1000 * SECOND)

struct gpu_model hardware;

uint64_t __wrap_loop_now(void);

uint64_t __wrap_loop_now(void)
{
	return world.now;
}

uint64_t __wrap_channels_ran(const struct channels_client *channels, uint64_t now);

uint64_t __wrap_channels_ran(const struct channels_client *channels, uint64_t now)
{
	(void)now;
	return hardware.enabled[container_of(channels, struct client, channels) - world.clients];
}

bool __wrap_channels_stays_stopped(const struct channels_client *channels);

bool __wrap_channels_stays_stopped(const struct channels_client *channels)
{
	return hardware.stands[container_of(channels, struct client, channels) - world.clients];
}

static void take_effect(unsigned i)
{
	bool stopped = world.clients[i].channels.stopped;

	if (stopped == hardware.stands[i])
		hardware.changes[i] = 0;
	else if (!hardware.changes[i])
		hardware.changes[i] = world.now + (stopped ? 700000 : 300000);
	else if (world.now >= hardware.changes[i])
		hardware.stands[i] = stopped;
}

/* Demand is for some SMs only: who may rely on that runs beside it. */
static bool is_blocked(const struct client *client)
{
	bool spatial = client->pages.control->flags & WEIR_CONTROL_SPATIAL;

	return !spatial && client->level < WEIR_DEMAND_LEVELS && world.demand[client->level].word;
}

/* A launch that has begun goes on for a while. */
static bool runs(unsigned i)
{
	const struct client *client = &world.clients[i];
	bool may = !world.control[i].hold && !is_blocked(client);

	if (!client->gpu || !world.status[i].outstanding || hardware.stands[i])
		return false;
	if (may)
		hardware.went_on[i] = 0;
	else if (!hardware.went_on[i])
		hardware.went_on[i] = world.now;
	return may || world.now - hardware.went_on[i] < hardware.leaves[i];
}

static unsigned weight(unsigned i)
{
	return hardware.weights[i] ? hardware.weights[i] : 1;
}

static void report(unsigned i)
{
	uint64_t launch = hardware.launch[i] ? hardware.launch[i] : 2 * MS;

	if (hardware.silent[i] ||
	    (hardware.tells[i] &&
	     world.now / hardware.tells[i] == (world.now + STEP) / hardware.tells[i]))
		return;
	world.status[i].executed = 1 + hardware.ran[i] / launch * launch;
}

static void pass(uint64_t ns)
{
	bool ran[WORLD_CLIENTS];
	unsigned all = 0;

	for (unsigned i = 0; i < WORLD_CLIENTS; i++) {
		if (!world.clients[i].gpu)
			continue;
		take_effect(i);
		hardware.enabled[i] += hardware.stands[i] ? 0 : ns;
		ran[i] = runs(i);
		all += ran[i] ? weight(i) : 0;
		hardware.busy[i] += world.status[i].outstanding ? ns : 0;
		/* libweir reports all of it when the work ends. */
		if (world.now / REPORT != (world.now + ns) / REPORT || !world.status[i].outstanding)
			world.status[i].demand_time = hardware.busy[i];
	}
	for (unsigned i = 0; i < WORLD_CLIENTS; i++) {
		if (!world.clients[i].gpu)
			continue;
		hardware.ran[i] += ran[i] ? ns * weight(i) / all : 0;
		report(i);
	}
	world.now += ns;
}

void run(uint64_t ns)
{
	uint64_t end = world.now + ns, next = world.now;

	while (world.now < end) {
		if (world.now >= next)
			next = scheduler_look(&world.scheduler, &world.gpu, world.now);
		pass(STEP);
	}
}

uint64_t ms_of(unsigned i, uint64_t ns)
{
	uint64_t before = hardware.ran[i];

	run(ns);
	return (hardware.ran[i] - before) / MS;
}

void change(void)
{
	scheduler_change(&world.scheduler, &world.gpu);
}

int model_set_up(void **state)
{
	memset(&hardware, 0, sizeof(hardware));
	int r = world_set_up(state);
	world.now = BEGIN;
	return r;
}
