/* Functions of libc that may lie in libdl or libpthread, bound when they are there; see
 * libc-compat.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct weak_libc {
	void *(*dlopen)(const char *path, int mode);
	void *(*dlsym)(void *handle, const char *name);
	/* NULL until weak_libc_bind_threads(), or if the process has none: then nothing is
	 * governed. */
	int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes,
			      void *(*body)(void *), void *argument);
	int (*pthread_key_create)(pthread_key_t *key, void (*destructor)(void *));
	int (*pthread_setspecific)(pthread_key_t key, const void *value);
};

extern struct weak_libc weak_libc;

/* False: libraries cannot be opened in this process. */
bool weak_libc_bind_loader(void);
/* @driver: a library that needs libpthread. */
void weak_libc_bind_threads(void *driver);

/* Runs @body once for the process; all callers return after it has run. (pthread_once may be
 * missing.) */
struct once {
	_Atomic int state;
};
void once(struct once *once, void (*body)(void));
