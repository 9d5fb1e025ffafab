/* The agent's own health, by the names that Prometheus clients use for a process. */
#pragma once

#include <stdio.h>

/* What cannot be read is left out. */
void process_metrics_write(FILE *out);
