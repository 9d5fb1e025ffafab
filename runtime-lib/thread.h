/* Threads of ours in somebody's process. */
#pragma once

/* Starts a detached thread with all signals blocked: the application's are for its own threads.
 * @name: up to 15 characters. 0, or an errno, logged. */
int thread_start(void *(*body)(void *), const char *name);
