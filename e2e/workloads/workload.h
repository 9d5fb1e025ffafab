/* Shared by all workloads: options, a context with a module, ways to fail, time and randomness.
 * Workloads use the driver API only and are linked with libcuda.so.1 without a run path. The same
 * program runs on the driver that the loader finds, real or simulated.
 *
 * A workload that finds a wrong value says so in one line and exits with 1.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type { OPTION_FLAG, OPTION_NUMBER, OPTION_REAL, OPTION_TEXT };

/* A program's own option; a table of them ends with a row without name. */
struct workload_option {
	const char *name;
	enum option_type type;
	void *value; /* bool, uint64_t, double or const char *, by type */
	const char *help;
};

struct workload {
	/* Options. 0 or NULL: not given. */
	double seconds;
	uint64_t iterations;
	uint64_t size;
	uint64_t seed;
	const char *ready_file;
	const char *stop_file;
	const char *go_file;
	bool gpu; /* sizes for a real GPU */

	CUdevice device;
	CUcontext context;
	CUmodule module;
	int sm_count;
	uint64_t started; /* when workload_ready() was called */
};

/* Fills in the options; exits with 2 on a wrong command line. @own may be NULL. */
void workload_parse(struct workload *workload, int argc, char **argv, const char *summary,
		    const struct workload_option *own);

/* Copies to the device and waits until the bytes are there. The driver's call returns once pageable
 * memory is staged, and a kernel in a non-blocking stream could overtake the rest. */
void workload_upload(CUdeviceptr to, const void *from, size_t bytes);

/* Makes device 0's primary context current and loads @ptx into it; NULL: nothing. */
void workload_open(struct workload *workload, const char *ptx);
void workload_close(struct workload *workload);
CUfunction workload_kernel(const struct workload *workload, const char *name);

/* Creates the ready file and waits for the go file; the time of --seconds begins. */
void workload_ready(struct workload *workload);

/* True: --seconds are over or the stop file is there. */
bool workload_stopped(const struct workload *workload);

/* Never NULL: without memory the program ends. For free(). */
void *workload_alloc(size_t size);

/* The option's value, or the default for this GPU. */
uint64_t workload_pick(const struct workload *workload, uint64_t given, uint64_t simulated,
		       uint64_t gpu);

uint64_t now_ns(void);
void sleep_until_ns(uint64_t when);

/* splitmix64: the same numbers from the same seed everywhere. */
struct random {
	uint64_t state;
};
uint64_t random_next(struct random *random);
/* 0..@limit-1 */
uint32_t random_below(struct random *random, uint32_t limit);

_Noreturn void workload_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void workload_fail_cuda(CUresult result, const char *call, const char *file, int line);

/* A driver call that must succeed. */
#define CU(call)                                                                \
	do {                                                                    \
		CUresult result_ = (call);                                      \
		if (result_ != CUDA_SUCCESS)                                    \
			workload_fail_cuda(result_, #call, __FILE__, __LINE__); \
	} while (0)
