/* Limits the registers per thread, so that as many blocks fit on an SM as of the original: one more
 * register may cost one block in eight. Limits in the kernel's own head take precedence. */
#include "passes/pass.h"

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;

	if (rewrite->registers_max && !function_directive(f, "maxnreg") &&
	    !function_directive(f, "minnctapersm"))
		edit_directive(f, "maxnreg", rewrite->registers_max);
}

const struct pass pass_registers = {"registers", run};
