/* Overruns: a kernel stays on the GPU although gates have closed behind it. For how long, the
 * status page says; what follows from it, the agent decides.
 *
 * Only what is certain counts. The launch began while gates were open, it is not finished, and it
 * is the next one of its stream to finish, with no gate that it could wait at. Launches in forms,
 * which leave by themselves, and launches with gates inside (sliced ones, captured graphs) never
 * count. Once gates have closed behind a kernel all its time counts until it ends, also while they
 * are open again, but not while the hardware stops it. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"

/* Worker: after the driver was asked what is finished. */
void overrun_tell(struct client *client, const struct tick *tick, struct weir_status_page *status);
