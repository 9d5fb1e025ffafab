#include "scheduler-world.h"

#include <string.h>
#include <utlist.h>

struct world world;

int world_set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.gpu.open = true;
	world.gpu.self_test.state = SELF_TEST_WORKS;
	memcpy(world.gpu.id, "GPU-x", sizeof("GPU-x"));
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
		world.gpu.region.pages[level].demand = &world.demand[level];
	HASH_ADD(hh, world.gpus, uuid, sizeof(world.gpu.uuid), &world.gpu);
	assert_int_equal(loop_init(&world.loop), 0);
	return scheduler_init(&world.scheduler, &world.loop, policy_find("ffs"), &policy_defaults,
			      &world.gpus);
}

int world_tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WORLD_CLIENTS; i++)
		tenant_free_usages(&world.tenants[i]);
	scheduler_deinit(&world.scheduler);
	loop_deinit(&world.loop);
	HASH_CLEAR(hh, world.gpus);
	return 0;
}

void come(unsigned i, uint8_t level, uint32_t share)
{
	struct client *client = &world.clients[i];

	world.tenants[i] = (struct tenant){.share = share, .level = level, .clients = client};
	*client = (struct client){
		.gpu = &world.gpu,
		.number = i + 1,
		.tenant = &world.tenants[i],
		.level = level,
		.pages = {.control = &world.control[i], .status = &world.status[i]}};
	memcpy(client->command, "app", sizeof("app"));
	DL_APPEND2(world.gpu.clients, client, gpu_prev, gpu_next);
	world.gpu.n_level[level]++;
	scheduler_add(&world.scheduler, client);
	world.now = loop_now();
}

void go(unsigned i)
{
	struct client *client = &world.clients[i];

	scheduler_remove(client);
	DL_DELETE2(world.gpu.clients, client, gpu_prev, gpu_next);
	world.gpu.n_level[client->level]--;
	scheduler_change(&world.scheduler, &world.gpu);
	world.now = loop_now();
}

void work(unsigned i, uint64_t remaining)
{
	world.status[i].outstanding = remaining > 0;
	world.status[i].remaining = remaining;
}

uint64_t look_after(uint64_t ns)
{
	world.now += ns;
	return scheduler_look(&world.scheduler, &world.gpu, world.now) - world.now;
}

unsigned n_held(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORLD_CLIENTS; i++)
		n += world.control[i].hold != 0;
	return n;
}

void two_at_work(uint8_t first_level, uint8_t second_level)
{
	come(0, first_level, 100);
	come(1, second_level, 100);
	work(0, MS);
	work(1, MS);
	look_after(MS);
}
