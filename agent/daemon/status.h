/* What `weirctl status` shows, as JSON text. */
#pragma once

#include "daemon/agent.h"

/* NULL: no memory. The caller frees it. */
char *status_print(struct agent *agent);
