#include "shim/thread.h"

#include "shim/weak-libc.h"

#include "weir/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* All signals but libc's own 32 and 33, and SIGSYS, 31. A setuid() sends 33 to all threads and
 * waits for them. A sandbox that emulates system calls raises SIGSYS in the thread that made one;
 * Linux kills the process if that thread blocks it. */
#define APPLICATIONS (~(7ull << 30))

/* Of the calling thread; threads that it starts inherit the mask. */
static void block_signals(uint64_t set, uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, before, sizeof(set));
}

int thread_start(void *(*body)(void *), const char *name)
{
	pthread_attr_t attributes;
	pthread_t thread;
	uint64_t before;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	block_signals(APPLICATIONS, &before);
	int error = weak_libc.pthread_create
			    ? weak_libc.pthread_create(&thread, &attributes, body, NULL)
			    : ENOSYS;
	block_signals(before, NULL);
	pthread_attr_destroy(&attributes);
	if (error)
		log_limited(LOG_ERROR, 60, "the thread %s cannot be started: %s", name,
			    strerror(error));
	return error;
}

void thread_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}
