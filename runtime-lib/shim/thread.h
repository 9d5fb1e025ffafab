/* Threads of ours in somebody's process. */
#pragma once

#include "weir/base.h"

#include <pthread.h>

static inline pthread_mutex_t *thread_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void thread_unlock(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* Locks @mutex until the end of the scope. */
#define locked(mutex)                                                                   \
	cleanup(thread_unlock) __attribute__((unused)) pthread_mutex_t *const locked_ = \
		thread_lock(mutex)

/* Starts a detached thread that blocks the application's signals. 0, or an errno, logged under
 * @name. */
int thread_start(void *(*body)(void *), const char *name);

/* Names the calling thread for tools: up to 15 characters. */
void thread_name(const char *name);
