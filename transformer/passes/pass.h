/* A form is a list of passes over a copy of a kernel.
 *
 * A pass does its work completely or refuses the kernel. The copy of a refused kernel is dropped,
 * and `weir-transform --list` shows the reason. The IR must verify between passes. */
#pragma once

#include "analysis/cfg.h"
#include "analysis/live.h"
#include "syntax/edit.h"
#include "syntax/ir.h"

#include "weir/preempt-abi.h"
#include "weir/transform.h"

struct async;
struct detached;
struct reconvergence;
struct exit_barriers;

/* The kernel that is being rewritten, and results that one pass leaves for later ones. */
struct rewrite {
	struct function *function;
	const struct form *form;
	struct detached *detached; /* what a detached kernel takes along (detach.h), or NULL */
	unsigned registers_max;    /* per thread; 0: no limit */

	bool is_straight;                    /* eligible: see weir_verdict */
	struct variable *hidden;             /* params: the hidden parameter (preempt-abi.h) */
	struct reg *index[3];                /* block-index: replaces %ctaid; NULL: not read */
	struct reconvergence *reconvergence; /* warp-exit, or NULL (reconvergence.h) */
	struct async *async;       /* async, or NULL: the kernel does nothing asynchronous */
	struct instruction *leave; /* uniform-exit: the only ret, where all threads end ... */
	bool exits_at_barrier;     /* ... behind a common barrier */
	bool needs_barrier;        /* threads must synchronise before the next block begins */
	bool needs_warps;          /* the kernel's code needs whole warps */
	unsigned barrier;          /* a barrier number that the kernel does not use */
	struct variable *tally;    /* shared word for reductions, 0 at the start; or NULL */
	struct exit_barriers *exit_barriers; /* exit-barrier.h; or NULL */

	struct safe *safe; /* safe-points, or NULL: no thread leaves inside a block */
	uint32_t save_fixed, save_per_thread, save_spared; /* save: see weir_verdict */
};

struct pass {
	const char *name;
	void (*run)(struct rewrite *rewrite); /* an error that stops it refuses the kernel */
};

struct form {
	enum weir_form id;
	const char *name;                 /* "persistent" */
	const char *suffix;               /* of the rewritten kernel's name */
	const struct pass *const *passes; /* ends with NULL */
};

extern const struct form forms[];
extern const size_t form_count;

/* Stops with -ENOTSUP. @at: the place in the text that causes the refusal. */
_Noreturn void pass_refuse(struct rewrite *rewrite, struct position at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The size of the form's struct in preempt-abi.h. */
size_t hidden_size(const struct form *form);

/* The number in the module's target: 90 for sm_90a; 0: none. */
unsigned pass_target(const struct module *module);

/* Whether the module has at least this version of PTX. */
bool pass_has_isa(const struct module *module, unsigned major, unsigned minor);

/* Whether pass_eligible refuses anything in @function for some form. */
bool pass_has_unsupported(const struct function *function);

extern const struct pass pass_dependents;
extern const struct pass pass_eligible;
extern const struct pass pass_params;
extern const struct pass pass_registers;
extern const struct pass pass_symbols;
extern const struct pass pass_block_index;
extern const struct pass pass_warp_exit;
extern const struct pass pass_warp_gather;
extern const struct pass pass_async;
extern const struct pass pass_uniform_exit;
extern const struct pass pass_tickets;
extern const struct pass pass_calls;
extern const struct pass pass_safe_points;
extern const struct pass pass_save;
extern const struct pass pass_shared_layout;
