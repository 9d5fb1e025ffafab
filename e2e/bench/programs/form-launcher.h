/* Launches of a plan's kernels in forms: what a launcher has to do for preempt-abi.h, and no more.
 * Unlike libweir it knows nothing about other processes; it measures.
 */
#pragma once

#include <weir/preempt-abi.h>
#include <weir/tickets.h>
#include <weir/transform.h>

#include "plan.h"

/* A form with its number: blocks of a ticket, or slices of a launch. */
struct variant {
	enum weir_form form;
	uint32_t parts;
	bool ahead; /* the next ticket is drawn ahead */
	bool even;  /* all tickets are of one size */
	bool spare; /* an SM has one worker less than it could */
	enum weir_ticket_order order;
};

struct form_kernel {
	CUfunction function[WEIR_FORM_COUNT]; /* NULL: refused */
	CUdeviceptr words;
	uint32_t serial;
	uint32_t save_fixed, save_per_thread; /* resumable (weir/transform.h) */
	CUdeviceptr saves;
	size_t saves_size;
};

/* What a kernel's workers save. */
struct form_save {
	char name[128];
	uint32_t fixed, per_thread;
};

struct form {
	struct variant variant; /* of the launches to come */
	struct form_kernel kernels[PLAN_KERNELS_MAX];
	uint64_t *demand; /* in the host's memory */
	CUdeviceptr demand_address;
	char *ptx;
	unsigned more;                            /* registers */
	struct form_save saves[PLAN_KERNELS_MAX]; /* of all kernels of the module */
	unsigned save_count;
	bool chained; /* behind each launch that nobody asks to leave stands a continuation */
	struct weir_slice slice; /* of the last launch */
	struct weir_persistent persistent;

	/* Evictions: each launch is asked to leave once, at a random moment of its time. */
	bool evict;
	struct random random;
	double us[PLAN_KERNELS_MAX];             /* that a launch takes natively */
	struct samples delays[PLAN_KERNELS_MAX]; /* from the demand until the GPU is idle */
	/* Evictions whose delay is not known: this process did not run meanwhile. */
	unsigned unseen[PLAN_KERNELS_MAX];
};

/* @benchmark's copy with rewritten kernels beside the others; its plan then is to be made of it.
 * @more: registers that their threads may have besides those with which as many blocks fit as
 * natively. */
void form_init(struct form *form, struct benchmark *copy, const struct benchmark *benchmark,
	       unsigned more);
void form_deinit(struct form *form);
/* Has @plan's kernels launched in @form->variant from now on. */
void form_attach(struct form *form, struct plan *plan);
/* Are all kernels of the plan there? */
bool form_has(const struct form *form, const struct plan *plan, enum weir_form kind);
/* Blocks of the launch's kernel that run at once on the whole GPU. */
uint32_t form_resident(const struct form *form, const struct plan *plan,
		       const struct plan_launch *launch, enum weir_form kind);
