/* What `weirctl status` shows, as JSON text. */
#pragma once

#include "daemon/decider.h"
#include "daemon/monitor.h"

/* NULL: no memory. The caller frees it. */
char *status_print(struct decider *decider, const struct monitor *monitor);
