/* Whose job the compile service does next, so that containers do not crowd each other out. */
#pragma once

#include "compile/jobs.h"

/* The job whose container, and then client, was served longest ago. Some job waits. */
struct compile_job *job_order_next(const struct compile *compile);
/* All helpers are busy. Takes the youngest job that may yield, if the container of @waiting has
 * none that runs. One at a time: the helper is free when the kernel reports its death. */
void job_order_make_room(const struct compile_job *waiting);
