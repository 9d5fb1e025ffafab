/* For programs that know about Weir. They run without it as well: each function looks for
 * libweir.so in the process, and answers -ENOSYS where it is not. There is nothing to link with but
 * dlsym(), which is in libdl where glibc is older than 2.34. C99 or C++; other languages find the
 * functions by name in the process (Python: ctypes.CDLL(None).weir_expect).
 *
 * All functions may be called by any thread, and return at once: 0, or a negative errno. They never
 * wait for the GPU or the agent. None of them changes what a program computes. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUstream, cudaStream_t */

#define WEIR_EXPECT_MAX_US 1000u

#ifdef WEIR_LIBRARY /* libweir.so itself */
int weir_available(void);
int weir_expect(unsigned within_us);
#else
#include <dlfcn.h>

typedef void (*weir_function_)(void);

/* Looks @name up once for each file that calls it. */
static inline weir_function_ weir_find_(weir_function_ *found, const char *name)
{
	weir_function_ function = __atomic_load_n(found, __ATOMIC_RELAXED);

	if (!function) {
		void *address = dlsym(RTLD_DEFAULT, name);
		__builtin_memcpy(&function, &address, sizeof(function));
		__atomic_store_n(found, function, __ATOMIC_RELAXED);
	}
	return function;
}

/* 1: an agent governs the current context, so the functions below have an effect. 0: not, or not
 * yet: a context is governed from its first launch on. */
static inline int weir_available(void)
{
	static weir_function_ found;
	weir_function_ function = weir_find_(&found, "weir_available");

	return function ? ((int (*)(void))function)() : 0;
}

/* The current context will launch something within @within_us microseconds (more than
 * WEIR_EXPECT_MAX_US count as that), and it pays to make room for it now: lower-level clients
 * leave, and the GPU may switch to this context. Best 300 to 500 us before the launch. A hint that
 * comes true too late, or never, only costs lower-level clients that time.
 *
 * -ENOSYS: no Weir. -EAGAIN: the context is not governed yet. */
static inline int weir_expect(unsigned within_us)
{
	static weir_function_ found;
	weir_function_ function = weir_find_(&found, "weir_expect");

	return function ? ((int (*)(unsigned))function)(within_us) : -ENOSYS;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
