#include "simcuda/machine/machine.h"

#include "simcuda/machine/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The queue of a GPU is a ring: head and tail only grow, a kernel's place is its ticket. A process
 * that is killed between two stores below leaves at worst an entry of its own, never a broken ring.
 */
static struct shared_kernel *ring(struct shared_gpu *gpu, uint64_t ticket)
{
	return &gpu->kernels[ticket % MACHINE_KERNELS];
}

/* The oldest kernel with unstarted blocks; null: none. */
static struct shared_kernel *oldest(struct shared_gpu *gpu)
{
	while (gpu->head != gpu->tail && !ring(gpu, gpu->head)->unstarted)
		gpu->head++;
	return gpu->head == gpu->tail ? NULL : ring(gpu, gpu->head);
}

uint64_t shared_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void occupy(struct shared_gpu *gpu, uint32_t slot, uint32_t owner)
{
	uint32_t busy = 0;

	for (uint32_t i = 0; i < MACHINE_SMS; i++)
		busy += gpu->slots[i] != 0;
	if (!busy && owner)
		gpu->busy_since = shared_now();
	if (busy == 1 && !owner)
		gpu->busy_time += shared_now() - gpu->busy_since;
	gpu->slots[slot] = owner;
}

static void forget_gpu(struct shared_gpu *gpu, uint32_t owner)
{
	for (uint64_t t = gpu->head; t != gpu->tail; t++)
		if (ring(gpu, t)->owner == owner)
			ring(gpu, t)->unstarted = 0;
	for (uint32_t i = 0; i < MACHINE_SMS; i++)
		if (gpu->slots[i] == owner)
			occupy(gpu, i, 0);
	/* Live processes say again what they want. */
	memset(gpu->wanted, 0, sizeof(gpu->wanted));
	oldest(gpu);
}

/* The lock is held. */
void shared_forget(struct shared *s, uint32_t index)
{
	struct shared_process *p = &s->processes[index];

	for (uint32_t g = 0; g < s->config.gpus; g++) {
		forget_gpu(&s->gpus[g], index + 1);
		shared_moved(&s->gpus[g]);
	}
	shared_break(s, index);
	memset(p->memory, 0, sizeof(p->memory));
	memset(p->groups, 0, sizeof(p->groups));
	memset(s->objects[index], 0, p->objects * sizeof(s->objects[index][0]));
	p->objects = 0;
	p->pipes_device = p->pipes_inode = 0;
	p->touched = 0;
	p->role = 0;
}

bool shared_dead(const struct machine *m, uint32_t index)
{
	const struct shared_process *p = &m->shared->processes[index];

	return p->role && (p->joined != p->generation || !shared_alive(m, index));
}

void shared_reap(struct machine *m)
{
	for (uint32_t i = 0; i < MACHINE_PROCESSES; i++)
		if (i != m->self && shared_dead(m, i))
			shared_forget(m->shared, i);
}

/* Makes room at the head, where started kernels may lie between those of stopped groups. */
static void compact(struct shared_gpu *gpu)
{
	uint64_t to = gpu->tail;

	for (uint64_t from = gpu->tail; from != gpu->head; from--) {
		struct shared_kernel *k = ring(gpu, from - 1);

		if (!k->unstarted || --to == from - 1)
			continue;
		*ring(gpu, to) = *k;
		k->unstarted = 0;
	}
	gpu->head = to;
}

int machine_push(struct machine *m, uint32_t gpu, const struct machine_kernel *kernel,
		 uint64_t *ticket)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	int r = MACHINE_FULL;

	shared_lock(m);
	oldest(g);
	if (g->tail - g->head == MACHINE_KERNELS)
		compact(g);
	if (g->tail - g->head < MACHINE_KERNELS) {
		*ticket = g->tickets++;
		*ring(g, g->tail++) = (struct shared_kernel){.owner = m->self + 1,
							     .group = kernel->group,
							     .cookie = kernel->cookie,
							     .ticket = *ticket,
							     .unstarted = kernel->blocks,
							     .priority = kernel->priority,
							     .cooperative = kernel->cooperative};
		m->shared->processes[m->self].groups[kernel->group].queued++;
		r = MACHINE_OK;
	}
	shared_unlock(m);
	return r;
}

static struct shared_group *group_of(const struct machine *m, const struct machine_place *place)
{
	return &m->shared->processes[m->self].groups[place->group];
}

/* All its blocks are started, or never will be. */
static void leave_queue(struct machine *m, struct shared_kernel *k)
{
	k->unstarted = 0;
	m->shared->processes[m->self].groups[k->group].queued--;
}

uint64_t machine_cancel(struct machine *m, uint32_t gpu, uint64_t ticket)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	uint64_t unstarted = 0;

	shared_lock(m);
	for (uint64_t t = g->head; t != g->tail; t++) {
		struct shared_kernel *k = ring(g, t);

		if (k->ticket != ticket || k->owner != m->self + 1 || !k->unstarted)
			continue;
		unstarted = k->unstarted;
		leave_queue(m, k);
	}
	shared_moved(g);
	shared_unlock(m);
	return unstarted;
}

void machine_give_slots(struct machine *m, uint32_t slots)
{
	atomic_store(&m->shared->processes[m->self].slots, slots);
}

uint32_t machine_given_slots(const struct machine *m)
{
	uint32_t slots = atomic_load(&m->shared->processes[m->self].slots);

	return slots ? slots : machine_slots(&m->config);
}

/* It has all the slots that MPS gives it. */
static bool is_full(const struct shared *s, const struct shared_gpu *gpu, uint32_t owner)
{
	uint32_t most = atomic_load(&s->processes[owner - 1].slots), n = 0;

	for (uint32_t i = 0; most && i < MACHINE_SMS; i++)
		n += gpu->slots[i] == owner;
	return most && n >= most;
}

/* Of groups that may run: a cooperative kernel that has begun, or else the oldest of the kernels
 * with the greatest priority. An H100 begins cooperative kernels as a whole, too: 5000 pairs of two
 * priorities in one process all ended (e2e/workloads/cooperative-pair.c). */
static struct shared_kernel *first_that_runs(const struct machine *m, uint32_t gpu)
{
	struct shared *s = m->shared;
	struct shared_gpu *g = &s->gpus[gpu];
	struct shared_kernel *first = NULL;

	if (!oldest(g))
		return NULL;
	for (uint64_t t = g->head; t != g->tail; t++) {
		struct shared_kernel *k = ring(g, t);

		bool before = k->begun || !first || k->priority < first->priority;

		if (!k->unstarted || !before || is_full(s, g, k->owner) ||
		    !shared_runs(m, gpu, shared_leader(s, k->owner, k->group)))
			continue;
		first = k;
		if (k->begun)
			break;
	}
	return first;
}

/* Takes a block of that kernel if it is ours. */
static bool take_block(struct machine *m, struct machine_place *place)
{
	struct shared_gpu *g = &m->shared->gpus[place->gpu];
	struct shared_kernel *k = first_that_runs(m, place->gpu);

	if (!k || k->owner != m->self + 1)
		return false;
	place->cookie = k->cookie;
	place->group = k->group;
	group_of(m, place)->blocks++;
	if (k->unstarted > 1) {
		k->unstarted--;
		k->begun = k->cooperative;
		return true;
	}
	leave_queue(m, k);
	if (oldest(g)) /* the next kernel may be somebody else's */
		shared_moved(g);
	return true;
}

static void take_place(struct machine *m, struct machine_place *place)
{
	struct shared_gpu *g = &m->shared->gpus[place->gpu];

	occupy(g, place->slot, m->self + 1);
	shared_place(group_of(m, place), true);
	place->held = true;
}

static void leave_place(struct machine *m, struct machine_place *place)
{
	struct shared_gpu *g = &m->shared->gpus[place->gpu];

	occupy(g, place->slot, 0);
	shared_place(group_of(m, place), false);
	place->held = false;
	shared_moved(g);
}

/* A free slot that nobody else wants, @home if possible. */
static bool find_slot(const struct machine *m, struct machine_place *place, uint32_t home)
{
	const struct shared_gpu *g = &m->shared->gpus[place->gpu];
	uint32_t i = 0;

	if (home < MACHINE_SMS && !g->slots[home]) {
		place->slot = home;
		return true;
	}
	while (i < machine_slots(&m->config) && (g->slots[i] || g->wanted[i]))
		i++;
	place->slot = i;
	return i < machine_slots(&m->config);
}

int machine_start(struct machine *m, uint32_t gpu, struct machine_place *place, uint32_t *sequence)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	int r = MACHINE_BUSY;

	*place = (struct machine_place){.gpu = gpu};
	shared_lock(m);
	shared_schedule(m, gpu);
	*sequence = atomic_load(&g->sequence);
	if (find_slot(m, place, MACHINE_SMS) && take_block(m, place)) {
		take_place(m, place);
		r = MACHINE_OK;
	}
	shared_unlock(m);
	return r;
}

int machine_next(struct machine *m, struct machine_place *place)
{
	struct shared_gpu *g = &m->shared->gpus[place->gpu];
	bool held = place->held;
	int r = MACHINE_BUSY;

	shared_lock(m);
	group_of(m, place)->blocks--;
	if (held) {
		shared_place(group_of(m, place), false);
		shared_ran(m, place->gpu, group_of(m, place)->leader);
		shared_schedule(m, place->gpu);
	}
	if (held && !g->wanted[place->slot] && take_block(m, place)) {
		shared_place(group_of(m, place), true);
		r = MACHINE_OK;
	} else if (held) {
		occupy(g, place->slot, 0);
		if (oldest(g) || g->wanted[place->slot] || machine_stopped(m, place->group))
			shared_moved(g);
	}
	shared_unlock(m);
	return r;
}

bool machine_may_run(const struct machine *m, const struct machine_place *place)
{
	uint32_t leader = shared_leader(m->shared, m->self + 1, place->group);

	if (!place->held)
		return false;
	shared_ran(m, place->gpu, leader);
	return shared_runs(m, place->gpu, leader);
}

void machine_pause(struct machine *m, struct machine_place *place, const volatile int *stop)
{
	struct shared_gpu *g = &m->shared->gpus[place->gpu];
	uint32_t leader = shared_leader(m->shared, m->self + 1, place->group);
	uint32_t home = place->slot;
	bool runs, ran = false;

	shared_lock(m);
	shared_schedule(m, place->gpu);
	if (place->held && !shared_runs(m, place->gpu, leader))
		leave_place(m, place);
	while (!place->held && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		uint32_t sequence = atomic_load(&g->sequence);

		shared_unlock(m);
		machine_wait(m, place->gpu, sequence);
		shared_lock(m);
		shared_schedule(m, place->gpu);
		runs = shared_runs(m, place->gpu, leader);
		g->wanted[home] |= runs;
		if (runs && find_slot(m, place, home))
			take_place(m, place);
		else if (ran && !runs)
			g->wanted[home] = 0;
		ran = runs;
	}
	if (ran)
		g->wanted[home] = 0;
	shared_unlock(m);
}

void machine_wait(struct machine *m, uint32_t gpu, uint32_t sequence)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	bool moved = shared_wait(g, sequence, shared_wait_ns(m, gpu));

	if (m->config.slices) /* somebody moves all the time */
		moved = shared_now() - g->reaped_at < MOVE_WAIT_NS;
	if (moved)
		return;
	shared_lock(m);
	g->reaped_at = shared_now();
	shared_reap(m);
	shared_unlock(m);
}

void machine_wake(struct machine *m, uint32_t gpu)
{
	shared_moved(&m->shared->gpus[gpu]);
}

static uint64_t used(const struct machine *m, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < MACHINE_PROCESSES; i++)
		sum += m->shared->processes[i].memory[gpu];
	return sum;
}

int machine_charge(struct machine *m, uint32_t gpu, uint64_t bytes)
{
	int r = MACHINE_FULL;

	shared_lock(m);
	if (bytes > m->config.memory || used(m, gpu) > m->config.memory - bytes)
		shared_reap(m);
	if (bytes <= m->config.memory && used(m, gpu) <= m->config.memory - bytes) {
		m->shared->processes[m->self].memory[gpu] += bytes;
		r = MACHINE_OK;
	}
	shared_unlock(m);
	return r;
}

void machine_refund(struct machine *m, uint32_t gpu, uint64_t bytes)
{
	uint64_t *mine = &m->shared->processes[m->self].memory[gpu];

	shared_lock(m);
	*mine -= bytes < *mine ? bytes : *mine;
	shared_unlock(m);
}

uint64_t machine_used(struct machine *m, uint32_t gpu)
{
	uint64_t sum;

	shared_lock(m);
	shared_reap(m);
	sum = used(m, gpu);
	shared_unlock(m);
	return sum;
}

void machine_touch(struct machine *m, uint32_t gpu)
{
	shared_lock(m);
	m->shared->processes[m->self].touched |= 1u << gpu;
	shared_unlock(m);
}

size_t machine_processes(struct machine *m, uint32_t gpu, struct machine_process *out, size_t max)
{
	size_t n = 0;

	shared_lock(m);
	shared_reap(m);
	for (uint32_t i = 0; i < MACHINE_PROCESSES; i++) {
		const struct shared_process *p = &m->shared->processes[i];

		if (p->role != MACHINE_COMPUTE || !(p->touched & 1u << gpu))
			continue;
		if (n < max)
			out[n] = (struct machine_process){shared_pid(m, i), p->memory[gpu]};
		n++;
	}
	shared_unlock(m);
	return n;
}

uint64_t machine_busy_time(struct machine *m, uint32_t gpu)
{
	const struct shared_gpu *g = &m->shared->gpus[gpu];
	uint64_t sum;
	bool busy = false;

	shared_lock(m);
	for (uint32_t i = 0; i < MACHINE_SMS; i++)
		busy |= g->slots[i] != 0;
	sum = g->busy_time + (busy ? shared_now() - g->busy_since : 0);
	shared_unlock(m);
	return sum;
}

void machine_uuid(uint32_t gpu, uint8_t uuid[16])
{
	static const uint8_t base[16] = {0x77, 0x65, 0x69, 0x72, 0x73, 0x69, 0x4d, 0x75,
					 0xa0, 0x6c, 0x61, 0x74, 0x65, 0x64, 0x00, 0x00};

	memcpy(uuid, base, sizeof(base));
	uuid[15] = (uint8_t)gpu;
}

void machine_uuid_text(uint32_t gpu, char text[MACHINE_UUID_TEXT])
{
	size_t n = (size_t)snprintf(text, MACHINE_UUID_TEXT, "GPU");
	uint8_t uuid[16];

	machine_uuid(gpu, uuid);
	for (size_t i = 0; i < sizeof(uuid); i++) {
		bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		n += (size_t)snprintf(text + n, MACHINE_UUID_TEXT - n, dash ? "-%02x" : "%02x",
				      uuid[i]);
	}
}
