/* Refuses kernels that a form cannot support, with a reason and its place. Finds out whether a
 * kernel is straight. Changes nothing. */
#include "analysis/async.h"
#include "passes/callee.h"
#include "passes/pass.h"

#include <string.h>

#define SLICED     (1u << WEIR_SLICED)
#define PERSISTENT (1u << WEIR_PERSISTENT)
#define RESUMABLE  (1u << WEIR_RESUMABLE)
#define LOOPS      (PERSISTENT | RESUMABLE) /* one worker runs many blocks of the grid */
#define ALL        (SLICED | LOOPS)

/* A feature, the forms that cannot have it, and why. */
struct bad {
	const char *name;
	unsigned forms;
	const char *reason;
};

static const struct {
	enum opcode_class op_class;
	unsigned forms;
	const char *reason;
} bad_classes[] = {
	{OP_UNKNOWN, LOOPS, "is unknown and might wait for other threads"},
	/* Only in called functions: dependents.c has removed the kernel's own. */
	{OP_GRID, ALL, "lets the next kernel begin before this one is finished"},
	{OP_STACK, LOOPS, "allocates stack that is freed only when the thread exits"},
	/* Only in called functions: registers.c has removed the kernel's own. */
	{OP_REGISTERS, LOOPS, "changes the registers of the next block"},
};

static const struct bad bad_specials[] = {
	{"%gridid", ALL, "differs between the launches of one kernel"},
	{"%total_smem_size", LOOPS, "includes shared memory that the form adds"},
	{"%aggr_smem_size", LOOPS, "includes shared memory that the form adds"},
};

static const struct {
	enum callee_effect effect;
	unsigned forms;
	const char *reason;
} bad_callees[] = {
	{CALLEE_EXTERNAL, ALL, "is not in this module"},
	{CALLEE_INDEX, ALL, "reads the block's index"},
	{CALLEE_UNSUPPORTED, ALL, "contains an unsupported instruction"},
	{CALLEE_BARRIER, LOOPS, "waits at a barrier"},
	{CALLEE_EXIT, LOOPS, "ends the thread"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What async.c of this folder cannot end with the block; a safe point can await plain copies only.
 */
static const char *async_reason(const struct mnemonic *m, unsigned form)
{
	const struct async_use use = async_use_of(m);

	if (use.kind == ASYNC_COPY)
		return NULL;
	if (use.kind == ASYNC_OTHER && form & LOOPS)
		return use.reason;
	return form & RESUMABLE ? "starts asynchronous work that a safe point cannot await" : NULL;
}

/* No form is launched in clusters, so each block is the only one of its cluster. */
static const char *cluster_reason(const struct mnemonic *m, unsigned form)
{
	if (!strcmp(m->name, "clusterlaunchcontrol"))
		return "takes blocks of the grid that have not begun";
	if (!strcmp(m->name, "barrier") && form & LOOPS)
		return "waits until threads have exited or come";
	return form & RESUMABLE ? "has an address that may differ where the block resumes" : NULL;
}

/* Whether the kernel can only be launched in clusters that the launch describes, or of several
 * blocks. */
static bool needs_clusters(const struct function *f)
{
	const struct directive *shape = function_directive(f, "reqnctapercluster");

	for (unsigned k = 0; shape && k < shape->value_count; k++)
		if (shape->values[k] > 1)
			return true;
	return function_directive(f, "blocksareclusters") ||
	       (function_directive(f, "explicitcluster") && !shape);
}

static const char *class_reason(const struct instruction *i, unsigned form)
{
	if (i->mnemonic->op_class == OP_ASYNC)
		return async_reason(i->mnemonic, form);
	if (i->mnemonic->op_class == OP_CLUSTER)
		return cluster_reason(i->mnemonic, form);
	for (size_t k = 0; k < COUNT(bad_classes); k++)
		if (bad_classes[k].op_class == i->mnemonic->op_class && bad_classes[k].forms & form)
			return bad_classes[k].reason;
	return NULL;
}

static const char *special_reason(const struct operand *operand, unsigned form)
{
	const char *reason = NULL;

	for (size_t k = 0; k < operand_items(operand) && !reason; k++)
		reason = special_reason(&operand->items[k], form);
	if (operand->kind != OPERAND_SPECIAL)
		return reason;
	/* A cooperative grid finds its grid-wide barrier there. */
	if (!strncmp(operand->text, "%envreg", 7))
		return "belongs to the driver, which uses it for cooperative grids";
	for (size_t k = 0; k < COUNT(bad_specials); k++)
		if (bad_specials[k].forms & form &&
		    !strncmp(operand->text, bad_specials[k].name, strcspn(operand->text, ".")) &&
		    strlen(bad_specials[k].name) == strcspn(operand->text, "."))
			return bad_specials[k].reason;
	return NULL;
}

static const char *instruction_reason(const struct instruction *i, unsigned form)
{
	const char *reason = class_reason(i, form);

	for (size_t k = 0; k < i->operand_count && !reason; k++)
		reason = special_reason(&i->operands[k], form);
	return reason;
}

bool pass_has_unsupported(const struct function *function)
{
	for_each_instruction (i, function)
		if (i->mnemonic->op_class == OP_ASYNC || instruction_reason(i, ALL))
			return true;
	return false;
}

static void check_call(struct rewrite *rewrite, const struct instruction *call)
{
	for (size_t k = 0; k < COUNT(bad_callees); k++)
		if (bad_callees[k].forms & 1u << rewrite->form->id)
			callee_refuse(rewrite, call, bad_callees[k].effect, "calls",
				      bad_callees[k].reason);
}

static void check_instruction(struct rewrite *rewrite, const struct instruction *i)
{
	const char *reason = class_reason(i, 1u << rewrite->form->id);

	if (reason)
		pass_refuse(rewrite, i->at, "%.80s %s", i->mnemonic->text, reason);
	for (size_t k = 0; k < i->operand_count && !reason; k++)
		reason = special_reason(&i->operands[k], 1u << rewrite->form->id);
	if (reason)
		pass_refuse(rewrite, i->at, "a special register %s", reason);
	if (i->mnemonic->op_class == OP_CALL)
		check_call(rewrite, i);
}

/* Whether no thread can wait until another block has begun. To wait for that it would have to look
 * at memory again and again. The driver's own functions, which have no body, wait for nobody. */
static bool is_straight(struct function *f)
{
	struct cfg cfg;

	cfg_build(f, &cfg);
	for_each_instruction (i, f) {
		enum opcode_class op_class = i->mnemonic->op_class;
		const struct function *called = op_class == OP_CALL ? callee_of(i) : NULL;

		if (op_class == OP_UNKNOWN || op_class == OP_CLUSTER ||
		    (op_class == OP_CALL && (!called || called->has_body)))
			return false;
	}
	return !f->loops && !cfg.irreducible;
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;

	if (needs_clusters(f))
		pass_refuse(rewrite, f->at, "the kernel is launched in clusters");
	/* bar.warp.sync and shfl.sync need PTX 6.0. */
	if (LOOPS & 1u << rewrite->form->id && !pass_has_isa(f->module, 6, 0))
		pass_refuse(rewrite, f->at, "PTX before 6.0 has no barriers for warps");
	/* The copy of the kernel would have a second instance of it. */
	for (const struct variable *v = f->variables; v; v = v->next)
		if (v->space == SPACE_GLOBAL)
			pass_refuse(rewrite, v->at,
				    "the kernel has a global variable of its own, %.80s", v->name);
	for_each_instruction (i, f)
		check_instruction(rewrite, i);
	rewrite->is_straight = is_straight(f);
}

const struct pass pass_eligible = {"eligible", run};
