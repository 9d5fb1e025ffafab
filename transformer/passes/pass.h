/* A form is a list of passes over a copy of a kernel.
 *
 * A pass either does its work completely, or refuses the kernel: then the copy is thrown away, and
 * the refusal is what `weir-transform --list` shows. Between two passes the IR must verify.
 */
#pragma once

#include "analysis/cfg.h"
#include "syntax/edit.h"
#include "syntax/ir.h"
#include "analysis/live.h"

#include "weir/preempt-abi.h"
#include "weir/transform.h"

struct detached;
struct reconvergence;
struct exit_barriers;

enum pass_outcome {
	PASS_DONE,
	PASS_REFUSED,
};

/* A kernel on its way into a form; what one pass leaves for the next. */
struct rewrite {
	struct function *function;
	const struct form *form;
	struct detached *detached; /* what the kernel takes with it (detach.h), or NULL */
	unsigned registers_max;    /* of a thread; 0: no limit */
	struct diag refusal;       /* why, with PASS_REFUSED */

	struct variable *hidden; /* params: what the launcher tells (preempt-abi.h) */
	struct reg *index[3];    /* block-index: instead of %ctaid; NULL: it is not read */
	struct reconvergence *reconvergence; /* warp-exit: of warps (reconvergence.h); or NULL */
	struct instruction *leave; /* uniform-exit: the one ret, where all threads have come ... */
	bool exits_at_barrier;     /* ... through a barrier */
	bool needs_barrier;        /* without one, nobody may begin the next block */
	unsigned barrier;          /* a number that the kernel leaves free */
	struct variable *tally;    /* a word that must be 0 at first; or NULL */
	struct exit_barriers *exit_barriers; /* barriers have numbers (exit-barrier.h); or NULL */

	struct safe *safe; /* safe-points, or NULL: nobody leaves inside a block */
	uint32_t save_fixed, save_per_thread; /* save: what weir_verdict says */
};

struct pass {
	const char *name;
	int (*run)(struct rewrite *rewrite); /* enum pass_outcome, or a negative errno */
};

struct form {
	enum weir_form id;
	const char *name;                 /* "persistent" */
	const char *suffix;               /* of the rewritten kernel's name */
	const struct pass *const *passes; /* up to a NULL */
};

extern const struct form forms[];
extern const size_t form_count;

/* Returns PASS_REFUSED. @at: the place in the text that is to blame. */
int pass_refuse(struct rewrite *rewrite, struct position at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Of the form's struct of preempt-abi.h. */
size_t hidden_size(const struct form *form);

/* The number in the module's target: 90 for sm_90a; 0: it has none. */
unsigned pass_target(const struct module *module);

/* Is the text written in this version of PTX, or in a later one? */
bool pass_has_isa(const struct module *module, unsigned major, unsigned minor);

/* Does it contain anything that pass_eligible refuses for some form? */
bool pass_has_unsupported(const struct function *function);

extern const struct pass pass_eligible;
extern const struct pass pass_params;
extern const struct pass pass_registers;
extern const struct pass pass_symbols;
extern const struct pass pass_block_index;
extern const struct pass pass_warp_exit;
extern const struct pass pass_uniform_exit;
extern const struct pass pass_tickets;
extern const struct pass pass_safe_points;
extern const struct pass pass_save;
