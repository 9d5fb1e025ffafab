/* Chooses a container's shares, and checks the shares that the kubelet chose. Pure functions on
 * sets of shares.
 *
 * A container's shares come from one GPU, or are whole GPUs. The kubelet only counts shares: it
 * asks us which of the free ones we prefer, and then names the shares that it took, which may be
 * others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARES_PER_GPU 100u
/* GPUs of a node. 64 x 100 device ids make a message of 0.5 MiB; the kubelet accepts 4 MiB. */
#define GPUS_MAX 64u

/* A set of shares of a node's GPUs, by index. */
struct shares {
	uint64_t bits[GPUS_MAX][2];
};

void shares_add(struct shares *shares, unsigned gpu, unsigned share);
bool shares_has(const struct shares *shares, unsigned gpu, unsigned share);
unsigned shares_count(const struct shares *shares, unsigned gpu);
unsigned shares_total(const struct shares *shares);

/* The node: its GPUs and their NUMA nodes, -1: none. */
struct node {
	unsigned n_gpus;
	int numa[GPUS_MAX];
	bool spread; /* spread parts over all GPUs instead of packing them */
};

/* Chooses @size shares of @available that include @must. A part of a GPU comes from the NUMA node
 * with the most free shares, there from the fullest GPU that has room (@spread: from the emptiest).
 * Whole GPUs come from one NUMA node if possible, the one with the fewest free GPUs. False:
 * impossible. */
bool allocator_prefer(struct shares *out, const struct node *node, const struct shares *available,
		      const struct shares *must, unsigned size);

/* Chooses @size shares of @available, with @must, of those GPUs that have the fewest: what a
 * container holds that no GPU has room for. */
void allocator_scatter(struct shares *out, const struct node *node, const struct shares *available,
		       const struct shares *must, unsigned size);

enum allocation {
	ALLOCATION_OK = 0,
	ALLOCATION_NONE,     /* no shares */
	ALLOCATION_TOO_MANY, /* more than one GPU has, but not whole GPUs */
	ALLOCATION_SPLIT,    /* from several GPUs, though they fit on one */
	ALLOCATION_PARTIAL,  /* the number of whole GPUs, but parts of more GPUs */
};

struct grant {
	unsigned n_shares;
	unsigned n_gpus;
	unsigned gpus[GPUS_MAX];
	bool whole; /* whole GPUs: without Weir */
};

/* Writes @out if the result is ALLOCATION_OK. */
enum allocation allocator_check(struct grant *out, const struct node *node,
				const struct shares *taken);
/* One line, which users see as the pod's status message. It is the same for all pods of a size, so
 * that their events count as one: which shares the kubelet took is left out. */
void allocator_explain(char *out, size_t size, enum allocation allocation, const char *resource,
		       const struct shares *taken);
