/* levels: the demand words alone. Same-level clients share the GPU as the hardware does it:
 * concurrently under MPS, else in its time slices. Costs nothing. */
#include "policy/policy.h"

const struct policy policy_levels = {.name = "levels", .shares = true, .never_holds = true};
