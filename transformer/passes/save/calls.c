// clang-format off
/* Lets only so many lanes at a time (weir_persistent.calls) call the driver's functions. Inside
 * these there is no safe point, and thousands of lanes that are in one wait for each other. So a
 * kernel could not leave before all of them have returned. In front of the call they can leave.
 *
 *	try:	a safe point, because this is the head of a loop
 *		one of the lanes that came together: calls < most?  calls += lanes, if it still is
 *		it was not?  wait
 *		store the parameters; call; load the result;  calls -= 1
 *	wait:	nanosleep; try
 *
 * A lane that counts itself in and out again would keep others out meanwhile, and thousands try at
 * once. So it counts by a compare-and-swap, and waits if another lane was first.
 *
 * `calls` is one word of the module, for all launches of the kernel. It is 0 when nobody calls:
 * lanes leave at `try`, before they enter, and those that entered return, because the functions
 * wait for nobody outside of them.
 *
 * Lanes that came together enter together. `try` branches to the call or to `wait`, so ptxas brings
 * the two together behind the call: a lane that has entered never waits for one that has not. */
// clang-format on
#include "passes/callee.h"
#include "passes/hidden.h"
#include "passes/pass.h"

#include <string.h>

#define SLEEP_NS  1000u /* a look is a read of a word that is in the L2 cache */
#define CALLS_MAX 32u   /* of a kernel: each takes ptxas time, and more are there for debugging */

/* A call, from its first parameter to its last result: PTX wants these without a branch between. */
struct sequence {
	struct instruction *first, *last;
};

/* Whether @operand is @variable, or names it inside. */
static bool names(const struct operand *operand, const struct variable *variable)
{
	bool found = operand->kind == OPERAND_VARIABLE && operand->variable == variable;

	for (size_t k = 0; k < operand_items(operand) && !found; k++)
		found = names(&operand->items[k], variable);
	return found;
}

static bool passes_to(const struct instruction *i, const struct operand *list)
{
	for (size_t k = 0; k < operand_items(list); k++)
		for (size_t o = 0; o < i->operand_count; o++)
			if (list->items[k].kind == OPERAND_VARIABLE &&
			    names(&i->operands[o], list->items[k].variable))
				return true;
	return false;
}

/* Whether @i stores a parameter of @call or loads its result. */
static bool belongs_to(const struct instruction *i, const struct instruction *call)
{
	for (size_t k = 0; k < call->operand_count; k++)
		if (call->operands[k].kind == OPERAND_LIST && passes_to(i, &call->operands[k]))
			return true;
	return false;
}

/* Lanes that have entered would wait for others there, or it belongs to another call. */
static bool is_in_the_way(const struct instruction *i, const struct instruction *call)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	if (i == call || op_class == OP_PLAIN || op_class == OP_DIRECTIVE)
		return false;
	return op_class != OP_MEMORY ||
	       (mnemonic_has(i->mnemonic, "param") && !belongs_to(i, call));
}

/* False: the call has to stay as it is. */
static bool find_sequence(struct sequence *s, struct instruction *call)
{
	*s = (struct sequence){call, call};
	for (struct instruction *i = call->prev; i && i->mnemonic->op_class != OP_CALL; i = i->prev)
		if (belongs_to(i, call))
			s->first = i;
	for (struct instruction *i = call->next; i && i->mnemonic->op_class != OP_CALL; i = i->next)
		if (belongs_to(i, call))
			s->last = i;
	for (const struct instruction *i = s->first; i != s->last->next; i = i->next)
		if (is_in_the_way(i, call))
			return false;
	return !call->guard;
}

static void write_enter(struct cursor *at, struct rewrite *rewrite, struct variable *calls,
			struct block *wait)
{
	struct operand most = hidden32(at, rewrite, HIDDEN(calls));

	edit_code(at,
		  "{ .reg .pred %one, %in; .reg .b32 %here, %n, %now, %found; .reg .b64 %calls;"
		  "  activemask.b32 %here; popc.b32 %n, %here; mov.u64 %calls, %0;"
		  "  mov.u32 %now, %lanemask_lt; and.b32 %now, %now, %here;"
		  "  setp.eq.u32 %one, %now, 0; sub.u32 %1, %1, 1; mov.u32 %now, 0; mov.u32 "
		  "%found, 0;"
		  "  @%one ld.volatile.global.u32 %now, [%calls];"
		  "  setp.le.and.u32 %in, %now, %1, %one; add.u32 %n, %n, %now;"
		  "  @%in atom.global.cas.b32 %found, [%calls], %now, %n;"
		  "  setp.eq.and.u32 %in, %found, %now, %in; vote.sync.any.pred %in, %in, %here;"
		  "  @!%in bra %2; }",
		  op_variable(calls), most, op_block(wait));
}

static void count(struct rewrite *rewrite, struct variable *calls, const struct sequence *s)
{
	struct function *f = rewrite->function;
	struct block *try = edit_new_block(f), *wait = edit_block(f, f->last, "wait");
	struct cursor at = cursor_before(f, s->first);

	cursor_place(&at, try);
	write_enter(&at, rewrite, calls, wait);
	at = cursor_after(f, s->last);
	edit_code(&at,
		  "{ .reg .b32 %less; .reg .b64 %calls; mov.u64 %calls, %0; mov.u32 %less, -1;"
		  "  red.global.add.u32 [%calls], %less; }",
		  op_variable(calls));
	at = cursor_end(f, wait);
	edit_code(&at, "nanosleep.u32 %0; bra %1;", op_int(SLEEP_NS), op_block(try));
}

/* From its end: each call splits the block, and what is behind it has to move. */
static struct variable *count_in(struct rewrite *rewrite, struct block *b, struct variable *calls)
{
	struct function *f = rewrite->function;
	struct sequence s;

	for (struct instruction *i = b->last, *prev; i; i = prev) {
		prev = i->prev;
		if (!calls_driver(i) || !find_sequence(&s, i))
			continue;
		prev = s.first->prev;
		calls = calls ? calls : edit_variable(f, SPACE_GLOBAL, "calls", 4, 4);
		count(rewrite, calls, &s);
	}
	return calls;
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct variable *calls = NULL;
	unsigned n = 0;

	for_each_instruction (i, f)
		n += calls_driver(i);
	if (n > CALLS_MAX || !pass_has_isa(f->module, 6, 3) || pass_target(f->module) < 70)
		return;
	for (struct block *b = f->entry, *next; b; b = next) {
		next = b->next;
		calls = count_in(rewrite, b, calls);
	}
}

const struct pass pass_calls = {"calls", run};
