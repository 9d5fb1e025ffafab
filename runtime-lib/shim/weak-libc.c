#include "shim/weak-libc.h"

#include <dlfcn.h>
#include <sched.h>

#define RTLD_INTERNAL 0x80000000 /* what glibc's own callers of __libc_dlopen_mode pass */

struct weak_libc weak_libc;

/* glibc's own, in libc.so.6 until 2.33, for a process without libdl. */
extern void *__libc_dlopen_mode(const char *path, int mode) __attribute__((weak));
extern void *__libc_dlsym(void *handle, const char *name) __attribute__((weak));

static void *open_internally(const char *path, int mode)
{
	return __libc_dlopen_mode(path, (int)((unsigned)mode | RTLD_INTERNAL));
}

/* The compiler takes it for granted that libc has these; the loader need not have found them. */
static void *there(void *function)
{
	__asm__("" : "+r"(function));
	return function;
}

bool weak_libc_bind_loader(void)
{
	if (there((void *)dlopen) && there((void *)dlsym)) {
		weak_libc.dlopen = dlopen;
		weak_libc.dlsym = dlsym;
	} else if (there((void *)__libc_dlopen_mode) && there((void *)__libc_dlsym)) {
		weak_libc.dlopen = open_internally;
		weak_libc.dlsym = __libc_dlsym;
	}
	return weak_libc.dlopen && weak_libc.dlsym;
}

static void *bind(void *function, void *driver, const char *name)
{
	return there(function) ? function : weak_libc.dlsym(driver, name);
}

void weak_libc_bind_threads(void *driver)
{
#define BIND(name) weak_libc.name = (__typeof__(weak_libc.name))bind((void *)(name), driver, #name)
	BIND(pthread_create);
	BIND(pthread_key_create);
	BIND(pthread_setspecific);
#undef BIND
}

void once(struct once *once, void (*body)(void))
{
	int state = 0;

	if (atomic_compare_exchange_strong(&once->state, &state, 1)) {
		body();
		atomic_store(&once->state, 2);
	}
	while (atomic_load(&once->state) != 2)
		sched_yield();
}
