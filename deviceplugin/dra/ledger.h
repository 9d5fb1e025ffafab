/* The prepared claims of this node, in a file that survives a restart of the plugin: each change is
 * in the file before the kubelet hears of it. */
#pragma once

#include "weir/claims.h"

struct config;

struct ledger {
	char *path;
	struct claims claims;
};

/* Reads the file. A file that cannot be read is a log message, and an empty ledger. */
int ledger_init(struct ledger *ledger, const struct config *config);
void ledger_deinit(struct ledger *ledger);
/* Takes @claim. 0, or a negative errno, and then nothing has changed. */
int ledger_add(struct ledger *ledger, struct claim *claim);
/* Also 0 if there is no such claim. */
int ledger_remove(struct ledger *ledger, const char *uid);
