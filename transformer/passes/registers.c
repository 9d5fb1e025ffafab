/* Limits the registers of a thread, so that rewritten kernels fill the GPU as their originals do:
 * one register more may cost every eighth block its place. The head's own limits win.
 */
#include "passes/pass.h"

static int run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;

	if (rewrite->registers_max && !function_directive(f, "maxnreg") &&
	    !function_directive(f, "minnctapersm"))
		edit_directive(f, "maxnreg", rewrite->registers_max);
	return PASS_DONE;
}

const struct pass pass_registers = {"registers", run};
