/* Threads of ours in somebody's process. */
#pragma once

/* Starts a detached thread that blocks the application's signals. 0, or an errno, logged under
 * @name. */
int thread_start(void *(*body)(void *), const char *name);

/* Names the calling thread for tools: up to 15 characters. */
void thread_name(const char *name);
