/* Which keys of a new configuration a running agent takes, and which wait for the next one.
 *
 * At once: policy, scheduling, mode, memoryDefault, gpus, logLevel, limits, health, unregistered,
 * standalone.rules, of levels all but the annotations' names, and of mps keep, keeper, multiUser,
 * required and check.
 *
 * The next agent: all others, which are sockets, folders, addresses, the API server, and programs.
 */
#pragma once

#include <stddef.h>

#include "config/config.h"

/* Moves what can be taken from @next into @config, and what was there into @next. @waiting: the
 * keys that differ and were not taken, with a comma between them, or nothing. */
void config_take(struct config *config, struct config *next, char *waiting, size_t size);
