/* A process beside the agent that outlives it by a moment. When the agent has ended, however, it
 * claims the freezer (freeze.h) and ends. That lets all processes go on that the agent had stopped
 * by a signal. If a new agent was faster, there is nothing left to do. */
#pragma once

/* @state: the agent's folder of state. Call before there are other threads. 0 or a negative errno.
 */
int freeze_watch_start(const char *state);
