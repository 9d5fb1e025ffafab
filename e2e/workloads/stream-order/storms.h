/* What may happen at any moment in a process while its threads drive streams. */
#pragma once

#include "workload.h"

#include <time.h>

/* Signals interrupt this thread all the time until the end; their handler does nothing. */
timer_t signals_begin(void);
void signals_end(timer_t timer);

/* A thread forks children, and lets threads and contexts come and go with work outstanding. */
void storms_begin(const struct workload *workload);
void storms_end(void);
