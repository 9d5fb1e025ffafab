/* Threads of ours in somebody's process. */
#pragma once

/* Starts a detached thread with the application's signals blocked: they are for its own threads. 0,
 * or an errno, logged under @name. */
int thread_start(void *(*body)(void *), const char *name);

/* Of the calling thread, as tools show it: up to 15 characters. */
void thread_name(const char *name);
