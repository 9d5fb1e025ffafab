#include "scheduler/siblings.h"

#include "scheduler/gpu/gpu.h"
#include "scheduler/tenants.h"

static bool has_work(const struct client *client)
{
	return atomic_load(&client->pages.status->outstanding) > 0 && !client_is_out(client);
}

static bool works_beside_sibling(const struct client *client)
{
	const struct client *other = client->tenant->clients;

	if (!has_work(client))
		return false;
	while (other && (other == client || other->gpu != client->gpu ||
			 other->level != client->level || !has_work(other)))
		other = other->tenant_next;
	return other;
}

bool siblings_look(struct gpu *gpu, uint64_t now)
{
	bool changes = false;

	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (works_beside_sibling(client))
			client->beside_sibling_until = now + SIBLINGS_NS;
		bool beside = now < client->beside_sibling_until;
		changes |= beside != client->beside_sibling;
		client->beside_sibling = beside;
	}
	return changes;
}
