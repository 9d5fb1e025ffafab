/* Channel groups: which of them may run.
 *
 * A stopped group never runs. With time slices, one group of a GPU is resident. It runs until its
 * slice is over and another group has work; groups with work take turns. A group that becomes
 * resident runs only when the switch is over, and its slice began with the switch: a slice that is
 * no longer than a switch makes no progress.
 *
 * The CPUs of this machine may have much else to do. A turn in which the group should have run, and
 * none of its threads had a CPU, is therefore longer than its slice, up to a limit. */
#include "simcuda/machine/file.h"

#define DEFAULT_SLICE_NS 2048000u
#define SHORTEST_WAIT_NS 20000u
#define LATE_NS          500000000u
#define STALE_NS         1000000u /* a slice that ended so long ago ends nobody's wait */

struct shared_group *shared_group(struct shared *s, uint32_t number)
{
	return &s->processes[number / MACHINE_GROUPS].groups[number % MACHINE_GROUPS];
}

bool shared_runs(const struct machine *m, uint32_t gpu, uint32_t leader)
{
	const struct shared_gpu *g = &m->shared->gpus[gpu];

	if (atomic_load_explicit(&shared_group(m->shared, leader)->stopped, memory_order_relaxed))
		return false;
	if (!m->config.slices)
		return true;
	if (atomic_load(&g->resident) != leader + 1)
		return false;
	uint64_t now = shared_now();
	return now >= atomic_load(&g->slice_begin) && now < atomic_load(&g->slice_end);
}

void shared_ran(const struct machine *m, uint32_t gpu, uint32_t leader)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];

	if (m->config.slices && atomic_load(&g->resident) == leader + 1 &&
	    shared_now() >= atomic_load(&g->slice_begin))
		atomic_store(&g->ran, 1);
}

/* The resident group, and who comes after it, among those that have work and are not stopped.
 * Leader + 1, 0: none. */
struct turn {
	uint32_t resident, next;
};

static void consider(struct turn *turn, uint32_t resident, uint32_t leader)
{
	/* Numbers go round: the distance from the resident group counts. */
	if (leader == resident)
		turn->resident = leader;
	else if (!turn->next || leader - resident - 1 < turn->next - resident - 1)
		turn->next = leader;
}

static struct turn find_turn(struct shared *s, uint32_t gpu)
{
	struct turn turn = {0};

	for (uint32_t p = 0; p < MACHINE_PROCESSES; p++) {
		const struct shared_process *process = &s->processes[p];

		for (uint32_t i = 0; process->role && i < MACHINE_GROUPS; i++) {
			const struct shared_group *group = &process->groups[i];

			if (group->gpu == gpu && (group->queued || group->blocks) &&
			    !atomic_load(&shared_group(s, group->leader)->stopped))
				consider(&turn, s->gpus[gpu].resident, group->leader + 1);
		}
	}
	return turn;
}

static uint64_t slice_of(struct shared *s, uint32_t resident)
{
	return shared_group(s, resident - 1)->slice;
}

void shared_schedule(struct machine *m, uint32_t gpu)
{
	struct shared *s = m->shared;
	struct shared_gpu *g = &s->gpus[gpu];
	uint64_t change = m->config.switch_us * UINT64_C(1000), now, slice;
	struct turn turn;

	if (!m->config.slices)
		return;
	turn = find_turn(s, gpu);
	now = shared_now();
	if (turn.resident && now < g->slice_end)
		return;
	slice = turn.resident ? slice_of(s, turn.resident) : 0;
	if (turn.resident && !g->ran && slice > change && now - g->turn_began < LATE_NS) {
		atomic_store(&g->slice_end, now + slice - change);
	} else if (turn.next) {
		slice = slice_of(s, turn.next);
		g->turn_began = now;
		atomic_store(&g->ran, 0);
		atomic_store(&g->resident, turn.next);
		atomic_store(&g->slice_begin, now + change);
		atomic_store(&g->slice_end, now + (slice > change ? slice : change));
		shared_moved(g);
	} else if (turn.resident) {
		atomic_store(&g->slice_end, now + slice);
	}
}

/* A slice's end is somebody's beginning. */
uint64_t shared_wait_ns(const struct machine *m, uint32_t gpu)
{
	const struct shared_gpu *g = &m->shared->gpus[gpu];
	uint64_t now, until;

	if (!m->config.slices)
		return MOVE_WAIT_NS;
	now = shared_now();
	until = atomic_load(&g->slice_begin);
	if (until <= now)
		until = atomic_load(&g->slice_end);
	if (until + STALE_NS < now)
		return MOVE_WAIT_NS;
	if (until < now + SHORTEST_WAIT_NS)
		return SHORTEST_WAIT_NS;
	return until - now < MOVE_WAIT_NS ? until - now : MOVE_WAIT_NS;
}

uint32_t shared_placed(const struct shared *s, uint32_t leader)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < MACHINE_PROCESSES; p++)
		for (uint32_t i = 0; s->processes[p].role && i < MACHINE_GROUPS; i++)
			if (s->processes[p].groups[i].leader == leader)
				n += s->processes[p].groups[i].placed;
	return n;
}

uint32_t shared_group_new(struct shared *s, uint32_t index, uint32_t gpu)
{
	struct shared_group *groups = s->processes[index].groups;
	uint32_t i = 0;

	while (i < MACHINE_GROUPS && (groups[i].users || groups[i].named))
		i++;
	if (i < MACHINE_GROUPS)
		groups[i] = (struct shared_group){.leader = index * MACHINE_GROUPS + i,
						  .gpu = gpu,
						  .faults_before = 1,
						  .faults = 1,
						  .slice = DEFAULT_SLICE_NS};
	return i;
}

static uint32_t shared_one(const struct shared_group *groups, uint32_t gpu)
{
	for (uint32_t i = 0; i < MACHINE_GROUPS; i++)
		if (groups[i].users && groups[i].gpu == gpu)
			return i;
	return 0;
}

uint32_t machine_group_new(struct machine *m, uint32_t gpu)
{
	uint32_t group;

	shared_lock(m);
	group = shared_group_new(m->shared, m->self, gpu);
	if (group == MACHINE_GROUPS)
		group = shared_one(m->shared->processes[m->self].groups, gpu);
	m->shared->processes[m->self].groups[group].users++;
	shared_unlock(m);
	return group;
}

void machine_group_free(struct machine *m, uint32_t group)
{
	shared_lock(m);
	m->shared->processes[m->self].groups[group].users--;
	shared_unlock(m);
}

static struct shared_group *leader_of(const struct machine *m, uint32_t group)
{
	return shared_group(m->shared, shared_leader(m->shared, m->self + 1, group));
}

bool machine_stopped(const struct machine *m, uint32_t group)
{
	return atomic_load_explicit(&leader_of(m, group)->stopped, memory_order_relaxed);
}

void machine_await(struct machine *m, uint32_t group)
{
	shared_await(leader_of(m, group));
}
