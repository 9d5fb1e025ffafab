/* Holds: the agent's word that it is not our turn. It renews each as long as it means it; one that
 * it has forgotten, because it is stopped or stuck, ends by itself. */
#pragma once

#include "client/client.h"

/* How often the link thread looks, in ns: the worker, which looks all the time, may be in a driver
 * call that itself waits for the hold to end. */
#define HOLD_LOOK 500000000u

/* Clears a hold whose time is over at @now. Returns when to look again. Any thread. */
uint64_t hold_expire(const struct level_binding *binding, uint64_t now);
