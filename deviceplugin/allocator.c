#include "allocator.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

void shares_add(struct shares *shares, unsigned gpu, unsigned share)
{
	shares->bits[gpu][share / 64] |= UINT64_C(1) << share % 64;
}

bool shares_has(const struct shares *shares, unsigned gpu, unsigned share)
{
	return shares->bits[gpu][share / 64] >> share % 64 & 1;
}

unsigned shares_count(const struct shares *shares, unsigned gpu)
{
	return (unsigned)(__builtin_popcountll(shares->bits[gpu][0]) +
			  __builtin_popcountll(shares->bits[gpu][1]));
}

unsigned shares_total(const struct shares *shares)
{
	unsigned total = 0;

	for (unsigned gpu = 0; gpu < GPUS_MAX; gpu++)
		total += shares_count(shares, gpu);
	return total;
}

/* Moves shares of @gpu from @available to @out until @out has @size of them. */
static void fill(struct shares *out, const struct shares *available, unsigned gpu, unsigned size)
{
	for (unsigned s = 0; s < SHARES_PER_GPU && shares_count(out, gpu) < size; s++)
		if (shares_has(available, gpu, s))
			shares_add(out, gpu, s);
}

/* The number of free shares on NUMA node @numa, on GPUs that have at least @least of them. */
static unsigned numa_shares(const struct node *node, const struct shares *available, int numa,
			    unsigned least)
{
	unsigned n = 0;

	for (unsigned gpu = 0; gpu < node->n_gpus; gpu++)
		if (node->numa[gpu] == numa && shares_count(available, gpu) >= least)
			n += shares_count(available, gpu);
	return n;
}

static bool is_better(const struct node *node, const struct shares *available, unsigned gpu,
		      unsigned than)
{
	unsigned has = shares_count(available, gpu), other = shares_count(available, than);

	if (!node->spread)
		return has < other;
	return has > other ||
	       (has == other && numa_shares(node, available, node->numa[gpu], 0) >
					numa_shares(node, available, node->numa[than], 0));
}

/* The best GPU that has @size shares in @available and all of @must, or -1. */
static int best_fit(const struct node *node, const struct shares *available,
		    const struct shares *must, unsigned size)
{
	unsigned bound = shares_total(must);
	int best = -1;

	for (unsigned gpu = 0; gpu < node->n_gpus; gpu++) {
		if (shares_count(available, gpu) < size || shares_count(must, gpu) < bound)
			continue;
		if (best < 0 || is_better(node, available, gpu, (unsigned)best))
			best = (int)gpu;
	}
	return best;
}

/* A GPU on the NUMA node with the fewest free GPUs that has @n of them, or -1. */
static int closest(const struct node *node, const struct shares *available, unsigned n)
{
	unsigned least = UINT_MAX;
	int best = -1;

	for (unsigned gpu = 0; gpu < node->n_gpus; gpu++) {
		unsigned has = numa_shares(node, available, node->numa[gpu], SHARES_PER_GPU);
		if (has < n * SHARES_PER_GPU || has >= least)
			continue;
		least = has;
		best = (int)gpu;
	}
	return best;
}

static bool prefer_whole(struct shares *out, const struct node *node,
			 const struct shares *available, const struct shares *must, unsigned n)
{
	unsigned chosen = 0;

	for (unsigned gpu = 0; gpu < node->n_gpus; gpu++) {
		if (!shares_count(must, gpu))
			continue;
		if (shares_count(available, gpu) != SHARES_PER_GPU || chosen++ == n)
			return false;
		fill(out, available, gpu, SHARES_PER_GPU);
	}

	int near = closest(node, available, n);
	/* First the chosen NUMA node, then the others. */
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned gpu = 0; gpu < node->n_gpus && chosen < n; gpu++) {
			bool is_near = near >= 0 && node->numa[gpu] == node->numa[near];
			if (is_near != (pass == 0) || shares_count(out, gpu) ||
			    shares_count(available, gpu) != SHARES_PER_GPU)
				continue;
			fill(out, available, gpu, SHARES_PER_GPU);
			chosen++;
		}
	}
	return chosen == n;
}

bool allocator_prefer(struct shares *out, const struct node *node, const struct shares *available,
		      const struct shares *must, unsigned size)
{
	struct shares chosen = {0};

	if (!size || shares_total(must) > size)
		return false;
	if (size >= SHARES_PER_GPU) {
		if (size % SHARES_PER_GPU ||
		    !prefer_whole(&chosen, node, available, must, size / SHARES_PER_GPU))
			return false;
	} else {
		int gpu = best_fit(node, available, must, size);
		if (gpu < 0)
			return false;
		memcpy(chosen.bits[gpu], must->bits[gpu], sizeof(chosen.bits[gpu]));
		fill(&chosen, available, (unsigned)gpu, size);
	}
	*out = chosen;
	return true;
}

void allocator_scatter(struct shares *out, const struct node *node, const struct shares *available,
		       const struct shares *must, unsigned size)
{
	bool used[GPUS_MAX] = {0};

	*out = *must;
	for (unsigned pass = 0; pass < node->n_gpus && shares_total(out) < size; pass++) {
		unsigned least = UINT_MAX, gpu = 0;
		for (unsigned g = 0; g < node->n_gpus; g++) {
			if (used[g] || shares_count(available, g) >= least)
				continue;
			least = shares_count(available, g);
			gpu = g;
		}
		used[gpu] = true;
		fill(out, available, gpu, shares_count(out, gpu) + size - shares_total(out));
	}
}

enum allocation allocator_check(struct grant *out, const struct node *node,
				const struct shares *taken)
{
	struct grant grant = {0};

	for (unsigned gpu = 0; gpu < node->n_gpus; gpu++) {
		unsigned n = shares_count(taken, gpu);
		if (!n)
			continue;
		grant.gpus[grant.n_gpus++] = gpu;
		grant.n_shares += n;
	}
	if (!grant.n_gpus)
		return ALLOCATION_NONE;
	grant.whole = grant.n_shares == grant.n_gpus * SHARES_PER_GPU;
	if (grant.n_gpus > 1 && !grant.whole) {
		if (grant.n_shares <= SHARES_PER_GPU)
			return ALLOCATION_SPLIT;
		return grant.n_shares % SHARES_PER_GPU ? ALLOCATION_TOO_MANY : ALLOCATION_PARTIAL;
	}
	*out = grant;
	return ALLOCATION_OK;
}

void allocator_explain(char *out, size_t size, enum allocation allocation, const char *resource,
		       const struct shares *taken)
{
	unsigned total = shares_total(taken);

	switch (allocation) {
	case ALLOCATION_OK:
		snprintf(out, size, "%s: %u shares granted", resource, total);
		return;
	case ALLOCATION_NONE:
		snprintf(out, size, "%s: the request names no shares", resource);
		return;
	case ALLOCATION_TOO_MANY:
		snprintf(out, size,
			 "%s: %u shares do not fit on one GPU (at most %u, or a multiple of %u for "
			 "whole GPUs)",
			 resource, total, SHARES_PER_GPU, SHARES_PER_GPU);
		return;
	case ALLOCATION_SPLIT:
		snprintf(out, size,
			 "%s: no GPU of this node had %u shares free; a container's shares must "
			 "come from one GPU",
			 resource, total);
		return;
	case ALLOCATION_PARTIAL:
		snprintf(out, size,
			 "%s: this node had no %u whole GPUs free; more than %u shares must be "
			 "whole GPUs",
			 resource, total / SHARES_PER_GPU, SHARES_PER_GPU);
		return;
	}
}
