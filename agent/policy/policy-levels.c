/* levels: the demand words alone. Equals share the GPU as the hardware does it: side by side under
 * MPS, else in its time slices. Costs nothing. */
#include "policy/policy.h"

const struct policy policy_levels = {.name = "levels", .shares = true, .untouched = true};
