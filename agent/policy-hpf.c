/* hpf, highest priority first (FLEP), by levels alone: the demand words already keep everybody
 * behind those above, and equals share the GPU as the hardware does it. So nobody is ever held, and
 * gates need not look at hold words. */
#include "policy.h"

const struct policy policy_hpf = {.name = "hpf"};
