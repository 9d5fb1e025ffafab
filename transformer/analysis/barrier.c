#include "analysis/barrier.h"

bool barrier_read(const struct instruction *i, struct barrier *out)
{
	size_t n = i->operand_count;

	if (i->mnemonic->op_class != OP_BARRIER)
		return false;
	*out = (struct barrier){.is_red = mnemonic_has(i->mnemonic, "red")};
	if (out->is_red) { /* result, number [, count], predicate */
		if (n < 3 || n > 4 || i->operands[n - 1].kind != OPERAND_REGISTER)
			return false;
		out->is_counted = n == 4;
		out->result = &i->operands[0];
		out->number = &i->operands[1];
		out->predicate = &i->operands[n - 1];
		return true;
	}
	if (n != 1 && n != 2)
		return false;
	out->is_counted = n == 2; /* number [, count] */
	out->number = &i->operands[0];
	return true;
}
