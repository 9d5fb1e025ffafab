/* Puts the shared memory that the passes added in front of the kernel's, at its start, and makes it
 * a multiple of SHARED_ALIGN bytes. So the kernel's variables keep their alignment, also where the
 * kernel relies on more than it declares. Behind each of them lies what lies there natively, also
 * where the kernel writes beyond an end.
 *
 * ptxas lays out the variables of a kernel in the order of declaration, then those of the module,
 * then dynamic memory. It drops variables that are not used, so padding is a part of the last one.
 */
#include "passes/pass.h"

/* Shared memory is allocated in such units, and no access needs more. */
#define SHARED_ALIGN 128u

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static bool is_added(const struct variable *v)
{
	return v->space == SPACE_SHARED && !v->at.line;
}

static bool names_shared(const struct operand *operand)
{
	if (operand->kind == OPERAND_VARIABLE)
		return operand->variable->space == SPACE_SHARED && !is_added(operand->variable);
	for (size_t k = 0; k < operand_items(operand); k++)
		if (names_shared(&operand->items[k]))
			return true;
	return false;
}

/* Whether the kernel may use shared memory of its own. */
static bool has_shared(const struct function *f)
{
	for_each_instruction (i, f) {
		if (i->mnemonic->op_class == OP_CALL)
			return true;
		for (size_t k = 0; k < i->operand_count; k++)
			if (names_shared(&i->operands[k]))
				return true;
	}
	return false;
}

/* Moves them to the front of the list and returns the last of them; NULL: there is none. */
static struct variable *move_added(struct function *f, uint64_t *end)
{
	struct variable *added = NULL, **added_end = &added, *last = NULL, **at = &f->variables;

	while (*at) {
		struct variable *v = *at;

		if (!is_added(v)) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		*added_end = last = v;
		added_end = &v->next;
		*end = round_up(*end, variable_align(v)) + v->size;
	}
	if (!last)
		return NULL;
	f->variables_end = at == &f->variables ? added_end : at;
	*added_end = f->variables;
	f->variables = added;
	return last;
}

static void run(struct rewrite *rewrite)
{
	uint64_t end = 0;
	struct variable *last = move_added(rewrite->function, &end);

	if (last && has_shared(rewrite->function))
		edit_resize(rewrite->function, last,
			    last->size + round_up(end, SHARED_ALIGN) - end);
}

const struct pass pass_shared_layout = {"shared-layout", run};
