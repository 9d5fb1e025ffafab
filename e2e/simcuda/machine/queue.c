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

static uint64_t now(void)
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
		gpu->busy_since = now();
	if (busy == 1 && !owner)
		gpu->busy_time += now() - gpu->busy_since;
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
	memset(p->memory, 0, sizeof(p->memory));
	p->touched = 0;
	p->role = 0;
}

/* Also while another process has claimed a dead one's entry and has not joined yet. */
static bool is_dead(const struct machine *m, uint32_t index)
{
	const struct shared_process *p = &m->shared->processes[index];

	return p->role && (p->joined != p->generation || !shared_alive(m, index));
}

static void reap(struct machine *m)
{
	for (uint32_t i = 0; i < MACHINE_PROCESSES; i++)
		if (i != m->self && is_dead(m, i))
			shared_forget(m->shared, i);
}

int machine_push(struct machine *m, uint32_t gpu, uint64_t cookie, uint64_t blocks,
		 uint64_t *ticket)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	int r = MACHINE_FULL;

	shared_lock(m);
	oldest(g);
	if (g->tail - g->head < MACHINE_KERNELS) {
		*ring(g, g->tail) = (struct shared_kernel){
			.owner = m->self + 1, .cookie = cookie, .unstarted = blocks};
		*ticket = g->tail++;
		r = MACHINE_OK;
	}
	shared_unlock(m);
	return r;
}

uint64_t machine_cancel(struct machine *m, uint32_t gpu, uint64_t ticket)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	uint64_t unstarted = 0;

	shared_lock(m);
	if (ticket >= g->head && ticket < g->tail && ring(g, ticket)->owner == m->self + 1) {
		unstarted = ring(g, ticket)->unstarted;
		ring(g, ticket)->unstarted = 0;
	}
	shared_moved(g);
	shared_unlock(m);
	return unstarted;
}

/* Takes a block of the oldest kernel if it is ours. */
static bool take_block(const struct machine *m, struct shared_gpu *g, uint64_t *cookie)
{
	struct shared_kernel *k = oldest(g);

	if (!k || k->owner != m->self + 1)
		return false;
	*cookie = k->cookie;
	if (!--k->unstarted && oldest(g)) /* the next kernel may be somebody else's */
		shared_moved(g);
	return true;
}

int machine_start(struct machine *m, uint32_t gpu, uint64_t *cookie, uint32_t *slot,
		  uint32_t *sequence)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	int r = MACHINE_BUSY;
	uint32_t i = 0;

	shared_lock(m);
	*sequence = atomic_load(&g->sequence);
	while (i < m->config.sms && g->slots[i])
		i++;
	if (i < m->config.sms && take_block(m, g, cookie)) {
		occupy(g, i, m->self + 1);
		*slot = i;
		r = MACHINE_OK;
	}
	shared_unlock(m);
	return r;
}

int machine_next(struct machine *m, uint32_t gpu, uint32_t slot, uint64_t *cookie)
{
	struct shared_gpu *g = &m->shared->gpus[gpu];
	int r = MACHINE_OK;

	shared_lock(m);
	if (!take_block(m, g, cookie)) {
		occupy(g, slot, 0);
		if (oldest(g))
			shared_moved(g);
		r = MACHINE_BUSY;
	}
	shared_unlock(m);
	return r;
}

void machine_wait(struct machine *m, uint32_t gpu, uint32_t sequence)
{
	if (shared_wait(&m->shared->gpus[gpu], sequence))
		return;
	shared_lock(m);
	reap(m);
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
		reap(m);
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
	reap(m);
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
	reap(m);
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
	sum = g->busy_time + (busy ? now() - g->busy_since : 0);
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
