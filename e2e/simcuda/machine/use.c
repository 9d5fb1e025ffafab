/* How long each process ran, in periods of the wall clock: what a driver counts for NVML. */
#include "simcuda/machine/file.h"

#include <time.h>

#define PERIOD_US 200000u

static uint64_t wall_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void add(struct shared_use *use, uint64_t from, uint64_t until)
{
	while (from < until) {
		uint64_t number = from / PERIOD_US, end = (number + 1) * PERIOD_US;
		struct shared_period *period = &use->periods[number % SHARED_PERIODS];

		if (period->number != number)
			*period = (struct shared_period){.number = number};
		if (end > until)
			end = until;
		period->us += end - from;
		from = end;
	}
}

void shared_count_use(struct shared_group *group)
{
	uint64_t now = wall_us(), from = group->use.since;
	uint64_t oldest = (now / PERIOD_US - SHARED_PERIODS + 1) * PERIOD_US;

	if (group->placed && !atomic_load(&group->stopped))
		add(&group->use, from > oldest ? from : oldest, now);
	group->use.since = now;
}

void shared_place(struct shared_group *group, bool placed)
{
	shared_count_use(group);
	group->placed += placed ? 1 : -1u;
}

/* Of the process's groups on @gpu, in period @number. */
static uint64_t used(struct shared_process *process, uint32_t gpu, uint64_t number)
{
	uint64_t us = 0;

	for (uint32_t i = 0; i < MACHINE_GROUPS; i++) {
		const struct shared_period *period =
			&process->groups[i].use.periods[number % SHARED_PERIODS];

		if (process->groups[i].gpu == gpu && period->number == number)
			us += period->us;
	}
	return us < PERIOD_US ? us : PERIOD_US;
}

static void count_all(struct shared_process *process)
{
	for (uint32_t i = 0; i < MACHINE_GROUPS; i++)
		shared_count_use(&process->groups[i]);
}

size_t machine_use(struct machine *m, uint32_t gpu, uint64_t since_us, struct machine_use *out,
		   size_t max)
{
	uint64_t last, first;
	size_t n = 0;

	shared_lock(m);
	shared_reap(m);
	last = wall_us() / PERIOD_US;
	first = last - SHARED_PERIODS + 1;
	for (uint32_t p = 0; p < MACHINE_PROCESSES; p++) {
		struct shared_process *process = &m->shared->processes[p];

		if (process->role != MACHINE_COMPUTE || !(process->touched & 1u << gpu))
			continue;
		count_all(process);
		for (uint64_t number = first; number < last; number++) {
			uint64_t end = (number + 1) * PERIOD_US;
			uint32_t percent = (uint32_t)(100 * used(process, gpu, number) / PERIOD_US);

			if (end <= since_us || !percent)
				continue;
			if (n < max)
				out[n] = (struct machine_use){shared_pid(m, p), percent, end};
			n++;
		}
	}
	shared_unlock(m);
	return n;
}
