/* Launches a plan's kernels in forms: the least that preempt-abi.h asks of a launcher. Unlike
 * libweir it ignores other processes; it only measures.
 */
#pragma once

#include <weir/preempt-abi.h>
#include <weir/tickets.h>
#include <weir/transform.h>

#include "form-groups.h"
#include "form-text.h"
#include "plan.h"

/* A form with its number: blocks of a ticket, or slices of a launch. */
struct variant {
	enum weir_form form;
	uint32_t parts;
	bool ahead;    /* workers draw the next ticket early */
	bool even;     /* all tickets are of one size */
	bool spare;    /* one worker less on each SM */
	bool saves;    /* resumable: blocks are always saved, never finished instead; */
	bool finishes; /* or finished however long they take, as far as other tickets tell */
	bool together; /* resumable: no warp of a block looks before the others */
	bool groups;   /* persistent: may leave a part of the SMs */
	enum weir_ticket_order order;
};

struct form_kernel {
	CUfunction function[WEIR_FORM_COUNT]; /* NULL: refused */
	CUdeviceptr words;
	uint32_t serial;
	uint32_t save_fixed, save_per_thread; /* resumable (weir/transform.h) */
	CUdeviceptr saves;
	size_t saves_size;
	uint64_t block_bytes;    /* of a save */
	uint32_t saved, drained; /* blocks, as of the last look at the words */
};

/* What happened in the evictions of a kernel. */
struct form_evictions {
	unsigned unseen;         /* their delay is unknown: this process did not run meanwhile */
	uint64_t saved, drained; /* blocks (weir/preempt-abi.h), */
	uint64_t block_bytes;    /* and what saving one takes, at most */
};

struct form {
	struct variant variant; /* of the launches to come */
	struct form_kernel kernels[PLAN_KERNELS_MAX];
	struct form_page *page; /* in the host's memory */
	CUdeviceptr page_address;
	char *ptx;
	unsigned more; /* registers */
	struct form_saves saves;
	uint64_t drain_percent;         /* of what libweir sets weir_persistent.drain to */
	uint64_t period_ns, look, lead; /* weir_persistent */
	int clock_khz, memory_khz, bus_bits;
	bool chained;            /* a continuation stands behind each launch that is not evicted */
	struct weir_slice slice; /* of the last launch */
	struct weir_persistent persistent;

	/* Each launch of a variant with `groups` leaves so many SMs once, and comes back; 0: none
	 * does. */
	uint32_t sms_left;
	struct group_watch watch;
	struct samples leaves[PLAN_KERNELS_MAX], returns[PLAN_KERNELS_MAX]; /* us */
	struct samples first_leaves[PLAN_KERNELS_MAX]; /* those of group_times.first, once more */
	bool each;                                     /* each leave is told, on stderr */

	/* Evictions: each launch must leave once, at a random moment of its time. */
	bool evict;
	struct random random;
	double *us; /* of each launch of the plan, natively: form_note_native() */
	struct samples delays[PLAN_KERNELS_MAX]; /* from the demand until the GPU is idle */
	struct form_evictions evictions[PLAN_KERNELS_MAX];
};

/* Copies @benchmark with rewritten kernels beside the others; the plan is made of the copy. @more:
 * registers of a thread beyond those with which as many blocks fit on an SM as natively. */
void form_init(struct form *form, struct benchmark *copy, const struct benchmark *benchmark,
	       unsigned more);
void form_deinit(struct form *form);
/* @plan launches its kernels in @form->variant from now on. */
void form_attach(struct form *form, struct plan *plan);
/* The last plan_measure() was that of native kernels. */
void form_note_native(struct form *form, const struct plan *plan);
/* Whether all kernels of the plan have the form. */
bool form_has(const struct form *form, const struct plan *plan, enum weir_form kind);
/* Blocks of the launch's kernel that run at once on the whole GPU. */
uint32_t form_resident(const struct form *form, const struct plan *plan,
		       const struct plan_launch *launch, enum weir_form kind);
