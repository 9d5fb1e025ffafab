/* Forms ahead of the first launch. While somebody above shares the GPU, the first launch of a
 * kernel waits for the form that leaves soonest (first-launch.h). So that form is compiled and
 * loaded in the background soon after its code was loaded (new-code.h), as long as no launch waits.
 * Only for code with few kernels: of a library with hundreds nobody knows which will be launched.
 */
#pragma once

#include "client/client.h"
#include "client/subsystem.h"

/* Columns of the table. */
void ahead_look(struct client *client, struct tick *tick);
void ahead_drive(struct client *client, struct tick *tick);
