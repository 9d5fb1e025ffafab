/* How many operations the driver queues before a call blocks: about 1000, of which each
 * continuation of a chain (launch/preempt.h) takes two. The driver's variable
 * CUDA_SCALE_LAUNCH_QUEUES (0.25x, 0.5x, 2x, 4x) makes it shorter or longer. A launch of minutes
 * below others needs the longest one, so libweir sets the variable where the pod did not. */
#pragma once

#include <stdint.h>

/* Once, before the driver's cuInit(), which reads the variable. Only in a process that an agent is
 * there for, and only with a driver that is known to follow the variable: a launch with more
 * continuations than there is room for would block. Other threads may read variables meanwhile. */
void launch_queue_lengthen(void);

/* Reads the variable; before the first client. */
void launch_queue_settings(void);

/* So many operations, if @usual are usual. */
uint32_t launch_queue_of(uint32_t usual);
