#include "thread.h"

#include "weir/log.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

int thread_start(void *(*body)(void *), const char *name)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(&thread, NULL, body, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		log_error("the thread %s cannot be started: %s", name, strerror(error));
		return error;
	}
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}
