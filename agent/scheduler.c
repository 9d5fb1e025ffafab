#include "scheduler.h"

#include <errno.h>

#include "weir/base.h"
#include "weir/error.h"

static void hold(struct policy_view *view, struct policy_client *policy_client, bool held)
{
	struct client *client = container_of(policy_client, struct client, policy);

	(void)view;
	policy_client->held = held;
	atomic_store(&client->pages.control->hold, held);
}

static void tick(struct scheduler *scheduler)
{
	const struct policy *policy = scheduler->policy;
	uint64_t now = loop_now(), next = POLICY_NEVER;
	struct gpu *gpu;

	if (!policy->tick)
		return;
	for (gpu = *scheduler->gpus; gpu; gpu = gpu->hh.next) {
		if (!gpu->policy_state)
			continue;
		uint64_t wanted = policy->tick(gpu->policy_state, &gpu->view, now);
		if (wanted < next)
			next = wanted;
	}
	if (next == POLICY_NEVER)
		loop_timer_clear(&scheduler->timer);
	else
		loop_timer_set(&scheduler->timer, next > now ? next - now : 0, 0);
}

static void tick_due(struct loop_timer *timer)
{
	tick(container_of(timer, struct scheduler, timer));
}

int scheduler_init(struct scheduler *scheduler, struct loop *loop, const struct policy *policy,
		   struct gpu **gpus)
{
	*scheduler = (struct scheduler){.policy = policy, .gpus = gpus};
	return loop_timer_init(&scheduler->timer, loop, tick_due);
}

void scheduler_deinit(struct scheduler *scheduler)
{
	loop_timer_deinit(&scheduler->timer);
}

int scheduler_add(struct scheduler *scheduler, struct client *client)
{
	const struct policy *policy = scheduler->policy;
	struct gpu *gpu = client->gpu;

	if (!gpu->policy_state) {
		gpu->policy_state = calloc(1, policy->state_size ? policy->state_size : 1);
		if (!gpu->policy_state)
			return error_origin(-ENOMEM);
		gpu->view = (struct policy_view){.hold = hold};
	}
	if (policy->holds)
		atomic_fetch_or(&client->pages.control->flags, WEIR_CONTROL_HOLDABLE);
	client->policy = (struct policy_client){.level = client->level};
	if (policy->added)
		policy->added(gpu->policy_state, &gpu->view, &client->policy, loop_now());
	tick(scheduler);
	return 0;
}

void scheduler_remove(struct scheduler *scheduler, struct client *client)
{
	const struct policy *policy = scheduler->policy;
	struct gpu *gpu = client->gpu;

	/* No state: it could not be added. */
	if (policy->removed && gpu->policy_state)
		policy->removed(gpu->policy_state, &gpu->view, &client->policy, loop_now());
	tick(scheduler);
}

void scheduler_change(struct scheduler *scheduler, struct client *client)
{
	const struct policy *policy = scheduler->policy;
	struct gpu *gpu = client->gpu;

	client->policy.level = client->level;
	if (policy->changed)
		policy->changed(gpu->policy_state, &gpu->view, &client->policy, loop_now());
	tick(scheduler);
}
