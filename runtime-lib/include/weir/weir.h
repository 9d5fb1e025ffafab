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

enum {
	WEIR_LEVEL_OWN = -1, /* what the agent gave to the process */
	WEIR_LEVEL_LOW = 0,
	WEIR_LEVEL_NORMAL = 1,
	WEIR_LEVEL_HIGH = 2,
	WEIR_LEVEL_CRITICAL = 3,
};

#ifdef WEIR_LIBRARY /* libweir.so itself */
int weir_available(void);
int weir_expect(struct CUstream_st *stream, unsigned within_us);
int weir_set_priority(struct CUstream_st *stream, int level);
#else
#include <dlfcn.h>

typedef void (*weir_function_)(void);

/* Looks @name up once for each file that calls it. */
static inline weir_function_ weir_find_(weir_function_ *found, const char *name)
{
	weir_function_ function = __atomic_load_n(found, __ATOMIC_RELAXED);

	if (!function) {
		void *address = dlsym((void *)0, name); /* RTLD_DEFAULT needs _GNU_SOURCE */
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

/* Something will be launched in @stream, of the current context, within @within_us microseconds
 * (more than WEIR_EXPECT_MAX_US count as that), and it pays to make room for it now: lower-level
 * clients leave. A hint that comes true too late, or never, only costs lower-level clients that
 * time.
 *
 * 250 us before @within_us is over, or at once, the GPU also begins to switch to this context,
 * which takes about 200 us. So the launch gains most if it comes in the last 50 us; with @within_us
 * above 250 one that comes much sooner gains little. The next thing put into the stream should be
 * that launch: if the stream is idle when the switch is to begin, libweir puts a small kernel into
 * it, which waits for the launch. From then on cuStreamQuery() answers that the stream is busy.
 * Whatever else comes behind that kernel waits for it, until @within_us is over. Launches in any
 * stream, and copies and synchronising calls that libweir watches, end it at once; if they come
 * before, there will be none. The newest hint of a context counts. No other thread may use the
 * stream during the call. NULL is the legacy default stream, CU_STREAM_PER_THREAD the calling
 * thread's, where nothing is begun later, only at once. A stream that was given a lower level
 * (weir_set_priority()) gains nothing.
 *
 * -ENOSYS: no Weir. -EAGAIN: the context is not governed yet. -EINVAL: the stream is of another
 * context. */
static inline int weir_expect(struct CUstream_st *stream, unsigned within_us)
{
	static weir_function_ found;
	weir_function_ function = weir_find_(&found, "weir_expect");

	return function ? ((int (*)(struct CUstream_st *, unsigned))function)(stream, within_us)
			: -ENOSYS;
}

/* What is launched in the stream from now on, or from some ms later on, acts at @level: it makes
 * way for clients above that level, and while it is at work no work of this context preempts
 * clients of that level or above. NULL is the legacy default stream. The call sets the context up
 * as its first launch would, which may take up to 1 s. Where the agent gives the process a lower
 * level later, that counts.
 *
 * No thread may launch in the stream meanwhile. A stream can always be lowered. It can be raised
 * when all that was launched in it is known to have ended: best after it was synchronized. Graphs
 * act at the level of the stream in which they are launched.
 *
 * -EINVAL: no such level. -EPERM: above the level that the agent gave to the process. -EBUSY: work
 * is outstanding in the stream that is to be raised. -ENOSYS: no Weir. -EAGAIN: the context cannot
 * be governed. */
static inline int weir_set_priority(struct CUstream_st *stream, int level)
{
	static weir_function_ found;
	weir_function_ function = weir_find_(&found, "weir_set_priority");

	return function ? ((int (*)(struct CUstream_st *, int))function)(stream, level) : -ENOSYS;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
