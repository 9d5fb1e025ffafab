/* The host side of loops on the GPU (weir/loop.cuh): libweir-loop.a. It launches the kernel, does
 * the input and output that it asks for, and launches it again whenever it has left the GPU.
 *
 *     weir_loop_new(&loop, kernel, &(struct weir_loop_options){.threads = 256});
 *     weir_loop_run(loop, (void *[]){NULL, &out}, &code);
 *     weir_loop_free(loop);
 *
 * Link with -luring and libcuda. C99 or C++. The CUDA context is the caller's current one, in all
 * functions but weir_loop_stop(), weir_loop_port() and weir_loop_stats(). One thread at a time uses
 * a loop, but for these three, which any thread may call. Programs run with and without libweir;
 * with it, a loop is scheduled as any other work (runtime-lib/loop/INTERNALS.md).
 *
 * Functions return 0 or a negative errno; weir_loop_error() has a line of text about it. A kernel
 * reads and writes files with the rights of this process. */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUfunc_st; /* CUfunction, cudaFunction_t */
struct weir_loop;

/* For host::call(): @data has @size bytes of the caller's, and room for WEIR_LOOP_INLINE. Returns
 * how many bytes it put there, or a negative errno. Runs in a thread of the loop; a slow one delays
 * other calls, and nothing else. */
typedef int64_t (*weir_loop_function)(void *user, void *data, uint64_t size);

struct weir_loop_options {
	uint32_t blocks;    /* at most as many as fit on the GPU at a time. 0: so many, but no more
			     * than WEIR_LOOP_SLOTS_MAX / callbacks */
	uint32_t threads;   /* of a block; 0: 128 */
	uint32_t shared;    /* bytes of dynamic shared memory */
	uint32_t callbacks; /* of a block at a time; 0: 8; at most 32 */
	uint32_t files;     /* open at a time; 0: 4096; at most 1048576 */
	/* Buffers of 1 MiB for large transfers, with four of 64 KiB each; 0: 16; at most 1024. 32
	 * are enough for the link's rate: 12 are filled while others are copied to the GPU. */
	uint32_t staging;
	/* Threads that copy from the page cache into these buffers. They start with the loop, and
	 * sleep when there was nothing more to copy for a third of `spin_us`. 0: three quarters of
	 * the processors that the process may use, at least 1, at most 12; while four reads wait,
	 * up to 3 more, but one processor stays the loop's thread's. At most 64 */
	uint32_t readers;
	uint32_t linger_us; /* the kernel leaves when all blocks have waited for so long; 0: 100.
			     * After a quarter of it, if it is mostly away for long */
	uint32_t spin_us;   /* the host looks for work without a pause for so long; 0: 150 */
	uint32_t poll_ns;   /* the GPU reads host memory no more often; 0: 1000 */
	bool no_uring;      /* a pool of threads in place of io_uring, as where that is forbidden */
	/* For large transfers of files that the kernel opens with O_DIRECT; NULL: "libcufile.so.0",
	 * if it is there; "": none. */
	const char *cufile;
	const char *name; /* for weirctl; NULL: none */
	const weir_loop_function *functions;
	size_t n_functions;
	void *user; /* of the functions */
};

/* @kernel: its first parameter is weir::loop_args. -EINVAL: an option out of its range, or more
 * blocks than fit. -ENOMEM. -EIO: the driver refuses. */
int weir_loop_new(struct weir_loop **out, struct CUfunc_st *kernel,
		  const struct weir_loop_options *options);

/* Runs the loop to its end. @params: the address of each kernel parameter, as for cuLaunchKernel();
 * the library writes the first one. @code: of exit(), else 0; may be NULL.
 * -ECANCELED: weir_loop_stop(). -EIO: the kernel failed. A loop runs once. */
int weir_loop_run(struct weir_loop *loop, void **params, int *code);

/* The kernel leaves at its next scheduling point, and weir_loop_run() returns. */
void weir_loop_stop(struct weir_loop *loop);

/* Closes all files and connections. NULL is fine. Not while weir_loop_run() runs. */
void weir_loop_free(struct weir_loop *loop);

/* The port of the @n-th listener that is open, 0 for the first; 0: there is none, or it has no
 * port. */
uint16_t weir_loop_port(const struct weir_loop *loop, uint32_t n);

/* Text about the last error of this loop; NULL: of weir_loop_new() in this thread. Never NULL. */
const char *weir_loop_error(const struct weir_loop *loop);

struct weir_loop_stats {
	uint64_t launches;                   /* of the kernel */
	uint64_t evictions;                  /* it left for others */
	uint64_t blocked;                    /* it left because all blocks waited */
	uint64_t blocked_ns;                 /* ns for which it was away then */
	uint64_t requests, batches, refused; /* refused: malformed ones */
	uint64_t bytes_in, bytes_out;        /* to and from the GPU */
	uint64_t gds;                        /* transfers by libcufile */
	uint32_t blocks;
	uint32_t polls;      /* of the GPU for answers, when the kernel last left; modulo 2^32 */
	uint32_t waiting[4]; /* requests of files, the network, timers, host functions */
	bool uring;
	bool on_gpu;        /* or about to be there */
	uint32_t linger_ns; /* of the next launch */
	uint64_t ran_ns;    /* on the GPU */
};
void weir_loop_stats(const struct weir_loop *loop, struct weir_loop_stats *out);

#ifdef __cplusplus
}
#endif
#endif
