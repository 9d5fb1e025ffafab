/* What another thread does at the very moment in which demand is shown at level 0. */
#pragma once

#include "inside.h"

/* Returns a copy of the client's binding, but its page of level 0 is in a mapping that cannot be
 * written yet: the first write there calls @meanwhile, and goes on then. Valid until the next call.
 */
struct level_binding *catch_write(void (*meanwhile)(void));
/* The write has come, and @meanwhile has returned. */
bool is_caught(void);
