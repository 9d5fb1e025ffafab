#include "policy/coexec/memory.h"

#include <string.h>

#include "policy/coexec/order.h"

#include "weir/base.h"

#define PARTNERS_MAX 16u /* of a kernel that are looked at */

bool coexec_set_is_sane(const struct coexec_set *set)
{
	bool sane = set->speed_up >= 0 && set->speed_up <= COEXEC_SPEED_UP_MAX;

	for (size_t i = 0; i < COEXEC_MOST; i++)
		sane &= set->workers[i] <= COEXEC_WORKERS;
	return sane;
}

static struct coexec_set *find(struct coexec_memory *memory, const uint64_t sorted[COEXEC_MOST])
{
	for (size_t i = 0; i < COEXEC_SETS; i++)
		if (memcmp(memory->sets[i].kernels, sorted, sizeof(memory->sets[i].kernels)) == 0)
			return &memory->sets[i];
	return NULL;
}

double coexec_memory_find(struct coexec_memory *memory, const uint64_t *kernels, unsigned n,
			  uint8_t *workers)
{
	unsigned order[COEXEC_MOST];
	uint64_t sorted[COEXEC_MOST];

	coexec_order(kernels, n, sorted, order);
	struct coexec_set *set = find(memory, sorted);
	if (!set)
		return 0;
	set->used = ++memory->uses;
	for (unsigned i = 0; workers && i < n; i++)
		workers[i] = set->workers[order[i]];
	return set->speed_up;
}

static struct coexec_set *oldest(struct coexec_memory *memory)
{
	struct coexec_set *found = &memory->sets[0];

	for (size_t i = 1; i < COEXEC_SETS; i++)
		if (memory->sets[i].used < found->used)
			found = &memory->sets[i];
	return found;
}

void coexec_memory_put(struct coexec_memory *memory, const uint64_t *kernels, unsigned n,
		       const uint8_t *workers, double speed_up)
{
	unsigned order[COEXEC_MOST];
	struct coexec_set new = {.speed_up = speed_up, .used = ++memory->uses};

	coexec_order(kernels, n, new.kernels, order);
	for (unsigned i = 0; i < n; i++)
		new.workers[order[i]] = workers[i];
	struct coexec_set *set = find(memory, new.kernels);
	*(set ? set : oldest(memory)) = new;
	memory->changes++;
}

unsigned coexec_memory_forget(struct coexec_memory *memory)
{
	unsigned n = 0;

	for (size_t i = 0; i < COEXEC_SETS; i++)
		n += memory->sets[i].kernels[0] != 0;
	memset(memory->sets, 0, sizeof(memory->sets));
	memory->unfinished = (struct coexec_unfinished){0};
	memory->changes++;
	return n;
}

bool coexec_memory_knows(const struct coexec_memory *memory, uint64_t kernel)
{
	for (size_t i = 0; kernel && i < COEXEC_SETS; i++)
		for (unsigned k = 0; k < COEXEC_MOST; k++)
			if (memory->sets[i].kernels[k] == kernel)
				return true;
	return false;
}

/* The other kernel, if @set is a pair with @kernel that gains; else 0. */
static uint64_t partner_of(const struct coexec_set *set, uint64_t kernel)
{
	bool first = set->kernels[0] == kernel, second = set->kernels[1] == kernel;

	if (set->kernels[2] || set->speed_up < COEXEC_PARTNERS || first == second)
		return 0;
	return set->kernels[first];
}

static bool is_among(const uint64_t *kernels, unsigned n, uint64_t kernel)
{
	for (unsigned i = 0; i < n; i++)
		if (kernels[i] == kernel)
			return true;
	return false;
}

bool coexec_memory_alike(const struct coexec_memory *memory, uint64_t a, uint64_t b)
{
	uint64_t partners[PARTNERS_MAX], found;
	unsigned n = 0;

	for (size_t i = 0; i < COEXEC_SETS && n < PARTNERS_MAX; i++)
		if ((found = partner_of(&memory->sets[i], a)))
			partners[n++] = found;
	for (size_t i = 0; n && i < COEXEC_SETS; i++)
		if ((found = partner_of(&memory->sets[i], b)) && is_among(partners, n, found))
			return true;
	return false;
}
