/* MPS: the clients of a server belong to its channel groups, and suffer together. */
#include "simcuda/machine/file.h"

void machine_server_open(struct machine *m, uint64_t device, uint64_t inode)
{
	struct shared_process *self = &m->shared->processes[m->self];

	shared_lock(m);
	self->pipes_device = device;
	self->pipes_inode = inode;
	shared_unlock(m);
}

/* The group of the server for @gpu; MACHINE_GROUPS: it has none. */
static uint32_t group_for(const struct shared_process *server, uint32_t gpu)
{
	for (uint32_t i = 0; i < MACHINE_GROUPS; i++)
		if (server->groups[i].named && server->groups[i].gpu == gpu)
			return i;
	return MACHINE_GROUPS;
}

/* A group's number; UINT32_MAX: none. */
static uint32_t find_leader(struct machine *m, uint32_t gpu, uint64_t device, uint64_t inode)
{
	for (uint32_t p = 0; p < MACHINE_PROCESSES; p++) {
		const struct shared_process *process = &m->shared->processes[p];
		uint32_t group;

		if (process->role != MACHINE_SERVER || process->pipes_device != device ||
		    process->pipes_inode != inode || shared_dead(m, p))
			continue;
		group = group_for(process, gpu);
		if (group < MACHINE_GROUPS)
			return p * MACHINE_GROUPS + group;
	}
	return UINT32_MAX;
}

uint32_t machine_server_join(struct machine *m, uint32_t gpu, uint64_t device, uint64_t inode)
{
	uint32_t group = MACHINE_GROUPS, leader;

	shared_lock(m);
	leader = find_leader(m, gpu, device, inode);
	if (leader != UINT32_MAX)
		group = shared_group_new(m->shared, m->self, gpu);
	if (group < MACHINE_GROUPS) {
		struct shared_group *mine = &m->shared->processes[m->self].groups[group];

		mine->users = 1;
		mine->leader = leader;
		mine->faults_before = shared_group(m->shared, leader)->faults;
	}
	shared_unlock(m);
	return group;
}

static void hit(struct shared *s, uint32_t leader)
{
	struct shared_group *group = shared_group(s, leader);

	if (group->faults) /* it lives */
		atomic_fetch_add(&group->faults, 1);
	shared_moved(&s->gpus[group->gpu]);
}

void shared_break(struct shared *s, uint32_t index)
{
	for (uint32_t i = 0; i < MACHINE_GROUPS; i++) {
		const struct shared_group *group = &s->processes[index].groups[i];

		if (group->users && group->blocks && group->leader / MACHINE_GROUPS != index)
			hit(s, group->leader);
	}
}

uint32_t machine_server_faults(struct machine *m)
{
	uint32_t sum = 0;

	shared_lock(m);
	shared_reap(m);
	for (uint32_t i = 0; i < MACHINE_GROUPS; i++)
		sum += m->shared->processes[m->self].groups[i].faults;
	shared_unlock(m);
	return sum;
}

void machine_server_terminate(struct machine *m, uint32_t pid)
{
	shared_lock(m);
	for (uint32_t p = 0; p < MACHINE_PROCESSES; p++) {
		struct shared_process *process = &m->shared->processes[p];

		if (p == m->self || !process->role || shared_pid(m, p) != pid)
			continue;
		for (uint32_t i = 0; i < MACHINE_GROUPS; i++) {
			struct shared_group *group = &process->groups[i];

			if (!group->users || group->leader / MACHINE_GROUPS != m->self)
				continue;
			atomic_store(&group->terminated, 1);
			shared_moved(&m->shared->gpus[group->gpu]);
		}
	}
	shared_unlock(m);
}

bool machine_terminated(const struct machine *m, uint32_t group)
{
	return atomic_load_explicit(&m->shared->processes[m->self].groups[group].terminated,
				    memory_order_relaxed);
}

bool machine_hit(const struct machine *m, uint32_t group)
{
	const struct shared_group *mine = &m->shared->processes[m->self].groups[group];

	return machine_terminated(m, group) ||
	       atomic_load_explicit(&shared_group(m->shared, mine->leader)->faults,
				    memory_order_relaxed) != mine->faults_before;
}

void machine_hit_others(struct machine *m, uint32_t group)
{
	uint32_t leader;

	shared_lock(m);
	leader = shared_leader(m->shared, m->self + 1, group);
	if (leader / MACHINE_GROUPS != m->self)
		hit(m->shared, leader);
	shared_unlock(m);
}
