/* Removes griddepcontrol. A launcher lets no form begin before the launch in front of it is
 * finished (weir/preempt-abi.h), so there is nothing to wait for. And no launch may begin because a
 * form permits it: a worker runs many blocks, and continuations follow, so it would begin too
 * early. A launch behind a form waits for its end, as behind a kernel that does not permit it. */
#include "passes/pass.h"

static void run(struct rewrite *rewrite)
{
	for_each_instruction (i, rewrite->function)
		if (i->mnemonic->op_class == OP_GRID)
			edit_remove(i);
}

const struct pass pass_dependents = {"dependents", run};
