#include "policy/coexec/space.h"

#include "weir/base.h"

bool coexec_is_bounded(const struct coexec_kernel *kernel)
{
	for (unsigned i = 0; i < WEIR_SM_RESOURCES; i++)
		if (kernel->parts[i])
			return true;
	return false;
}

/* At least 1/COEXEC_WORKERS of the SM in places for workers, whatever the client says. */
static uint64_t part_of(const struct coexec_kernel *kernel, unsigned resource)
{
	uint64_t part = smaller(kernel->parts[resource], WEIR_SM_PARTS);

	return resource == WEIR_SM_RESOURCES - 1 ? larger(part, WEIR_SM_PARTS / COEXEC_WORKERS)
						 : part;
}

unsigned coexec_room(const struct coexec_kernel *kernels, unsigned n,
		     const struct coexec_configuration *beside, unsigned i)
{
	uint64_t room = COEXEC_WORKERS;

	if (!coexec_is_bounded(&kernels[i]))
		return 0;
	for (unsigned resource = 0; resource < WEIR_SM_RESOURCES; resource++) {
		uint64_t left = WEIR_SM_PARTS, part = part_of(&kernels[i], resource);
		for (unsigned k = 0; k < n; k++) {
			uint64_t taken = k == i ? 0 : beside->workers[k];
			taken *= part_of(&kernels[k], resource);
			left -= smaller(taken, left);
		}
		if (part)
			room = smaller(room, left / part);
	}
	return (unsigned)room;
}

static void add(struct coexec_space *space, const struct coexec_configuration *configuration)
{
	if (space->n < countof(space->of))
		space->of[space->n++] = *configuration;
}

/* The bounded kernel @i of two has the one that is not beside it, which takes the rest. */
static void pair_with_unbounded(struct coexec_space *out, const struct coexec_kernel kernels[2],
				unsigned i)
{
	struct coexec_configuration now = {{0}};
	unsigned most = coexec_room(kernels, 2, &now, i);

	out->gains = i;
	/* All of the SM would leave the other one nothing. */
	for (unsigned n = 1; n < most; n++) {
		now.workers[i] = (uint8_t)n;
		add(out, &now);
	}
}

void coexec_space_pair(struct coexec_space *out, const struct coexec_kernel kernels[2])
{
	struct coexec_configuration now = {{0}};

	*out = (struct coexec_space){0};
	if (!coexec_is_bounded(&kernels[0]) || !coexec_is_bounded(&kernels[1])) {
		if (coexec_is_bounded(&kernels[0]) || coexec_is_bounded(&kernels[1]))
			pair_with_unbounded(out, kernels, !coexec_is_bounded(&kernels[0]));
		else
			add(out, &now);
		return;
	}
	for (unsigned n = 1; n < COEXEC_WORKERS; n++) {
		now.workers[0] = (uint8_t)n;
		now.workers[1] = 0;
		if (coexec_room(kernels, 2, &now, 0) < n)
			return;
		now.workers[1] = (uint8_t)coexec_room(kernels, 2, &now, 1);
		if (now.workers[1] && coexec_room(kernels, 2, &now, 0) == n)
			add(out, &now);
	}
}

static uint64_t scarcest(const struct coexec_kernel *kernel, unsigned workers)
{
	uint64_t most = 0;

	for (unsigned resource = 0; resource < WEIR_SM_RESOURCES; resource++)
		most = larger(most, part_of(kernel, resource));
	return most * workers;
}

/* Takes a worker from the kernel before the last that takes most of an SM. False: each has one. */
static bool take_one_away(const struct coexec_kernel *kernels, unsigned n,
			  struct coexec_configuration *from)
{
	uint64_t most = 0;
	unsigned found = n;

	for (unsigned k = 0; k + 1 < n; k++) {
		uint64_t takes = scarcest(&kernels[k], from->workers[k]);
		if (from->workers[k] > 1 && takes > most) {
			most = takes;
			found = k;
		}
	}
	if (found < n)
		from->workers[found]--;
	return found < n;
}

void coexec_space_join(struct coexec_space *out, const struct coexec_kernel *kernels, unsigned n,
		       const struct coexec_configuration *before)
{
	struct coexec_configuration now = *before;
	unsigned last = n - 1, had = 0;

	*out = (struct coexec_space){.gains = last};
	now.workers[last] = 0;
	if (!coexec_is_bounded(&kernels[last])) {
		do
			add(out, &now);
		while (take_one_away(kernels, n, &now));
		return;
	}
	do {
		unsigned room = coexec_room(kernels, n, &now, last);
		if (room > had) {
			now.workers[last] = (uint8_t)room;
			add(out, &now);
			had = room;
		}
		now.workers[last] = 0;
	} while (take_one_away(kernels, n, &now));
}
