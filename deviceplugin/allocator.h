/* Which shares a container gets, and whether those that the kubelet chose are a possible grant.
 * Pure functions on sets of shares.
 *
 * A container's shares come from one GPU, or are whole GPUs. The kubelet only counts; it asks for a
 * preference with what is free, then names the shares that it took, which need not be those.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARES_PER_GPU 100u
/* GPUs of a node. 64 x 100 device ids are 0.5 MiB in a message; the kubelet takes up to 4 MiB. */
#define GPUS_MAX 64u

/* Shares of a node's GPUs, which are known by their index. */
struct shares {
	uint64_t bits[GPUS_MAX][2];
};

void shares_add(struct shares *shares, unsigned gpu, unsigned share);
bool shares_has(const struct shares *shares, unsigned gpu, unsigned share);
unsigned shares_count(const struct shares *shares, unsigned gpu);
unsigned shares_total(const struct shares *shares);

/* What the allocator knows of a node: its GPUs, and the NUMA node of each, -1: none. */
struct node {
	unsigned n_gpus;
	int numa[GPUS_MAX];
	bool spread; /* parts of GPUs: over all, instead of onto as few as possible */
};

/* Chooses @size of @available, @must (a part of it) among them. A part comes from the fullest GPU
 * that still has room, or from the emptiest, of the NUMA node with the most free. Whole GPUs come
 * from one NUMA node where that is possible, the one with the fewest free. False: there is no such
 * choice. */
bool allocator_prefer(struct shares *out, const struct node *node, const struct shares *available,
		      const struct shares *must, unsigned size);

enum allocation {
	ALLOCATION_OK = 0,
	ALLOCATION_NONE,     /* no shares at all */
	ALLOCATION_TOO_MANY, /* more than one GPU has, and not whole GPUs */
	ALLOCATION_SPLIT,    /* from more GPUs than one, though they would fit on one */
	ALLOCATION_PARTIAL,  /* as many as whole GPUs, but parts of more */
};

struct grant {
	unsigned n_shares;
	unsigned n_gpus;
	unsigned gpus[GPUS_MAX];
	bool whole; /* all shares of its GPUs: left alone */
};

/* @out is written when it is ALLOCATION_OK. */
enum allocation allocator_check(struct grant *out, const struct node *node,
				const struct shares *taken);
/* One line for people, who see it as the pod's status message. */
void allocator_explain(char *out, size_t size, enum allocation allocation, const char *resource,
		       const struct node *node, const struct shares *taken);
