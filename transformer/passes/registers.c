/* Limits the registers per thread, so that as many blocks fit on an SM as of the original: one more
 * register may cost one block in eight. A limit in the kernel's own head takes precedence.
 *
 * Removes setmaxnreg: a worker's next block must begin with the number of registers that the kernel
 * was compiled for, and warps that moved registers between them end where they cannot give them
 * back. Without it, each thread keeps that number. The result is the same, and libweir measures
 * what it costs. */
#include "passes/pass.h"

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;

	for_each_instruction (i, f)
		if (i->mnemonic->op_class == OP_REGISTERS)
			edit_remove(i);
	if (rewrite->registers_max && !function_directive(f, "maxnreg"))
		edit_directive(f, "maxnreg", rewrite->registers_max);
}

const struct pass pass_registers = {"registers", run};
