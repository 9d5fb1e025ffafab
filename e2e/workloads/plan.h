/* A benchmark as data: buffers with their contents before and after, and launches in order. A
 * benchmark's file makes a plan once, with the results that the CPU computed. plan_round() runs it
 * any number of times and compares. */
#pragma once

#include "parallel.h"
#include "samples.h"
#include "workload.h"

enum input_class { CLASS_LARGE, CLASS_SMALL, CLASS_TRIVIAL, CLASS_COUNT };

#define PLAN_BUFFERS_MAX   24
#define PLAN_KERNELS_MAX   8
#define PLAN_ARGUMENTS_MAX 16

/* Device memory. Before a round it holds @input, or bytes 0xff where there is none. */
struct buffer {
	size_t bytes;
	CUdeviceptr device;
	void *input;
	CUdeviceptr original; /* a copy of @input on the device, of buffers that kernels write to */
	void *want;           /* expected content after a round; NULL: any */
	void *result;         /* its content after a round */
	double tolerance; /* 0: every bit is as wanted; else floats, relative to the larger of 1 and
			     @want */
	bool mapped;      /* host memory that the device sees: @result; zeroed before a round */
	bool adds;        /* passes of a round add to it: of type uint64_t */
};

struct shape {
	unsigned grid[3], block[3], shared;
};

struct plan;

/* A row of benchmarks[]. */
struct benchmark {
	const char *name, *source, *ptx, *unit;
	uint32_t sizes[2][CLASS_COUNT]; /* on the simulated GPU, on a real one */
	void (*plan)(struct plan *plan, uint32_t size);
	/* The host's part, for kernels that stop only when they are told to. It is called when all
	 * is launched and must end the kernels. Then it may judge results that vary. */
	void (*meanwhile)(struct plan *plan);
	void (*judge)(struct plan *plan);
};

struct plan_kernel {
	const char *name;
	CUfunction function;
	unsigned launches;             /* in a round */
	double round_us;               /* so far */
	struct samples single, rounds; /* microseconds of a launch, of all of a round */
};

struct plan_launch {
	struct plan_kernel *kernel;
	struct shape shape;
	uint64_t arguments[PLAN_ARGUMENTS_MAX];
	void *large[PLAN_ARGUMENTS_MAX]; /* arguments of more than 8 bytes; else NULL */
	unsigned argument_count;
	CUevent before, after;
	double us; /* in the last plan_measure() */
};

struct plan {
	const struct benchmark *benchmark;
	const struct workload *workload;
	struct random random;
	uint32_t size;
	CUmodule module;
	CUstream stream;
	struct buffer buffers[PLAN_BUFFERS_MAX];
	unsigned buffer_count;
	struct plan_kernel kernels[PLAN_KERNELS_MAX];
	unsigned kernel_count;
	struct plan_launch *launches;
	size_t launch_count, launch_capacity;
	struct samples wall; /* microseconds of a round, from the first launch until all is done */
	uint64_t rounds;     /* so far */
	uint64_t hash;       /* of the last round's results, 0: they vary */
	void *state;         /* the benchmark's own, for free() */
	/* Called instead of cuLaunchKernel unless NULL. @parameters has room for one more. */
	void (*launcher)(void *data, struct plan *plan, const struct plan_launch *launch,
			 void **parameters);
	void *launcher_data;
};

/* papers/benchmarks.c, tensor/benchmarks.c or masks/benchmarks.c. */
extern const struct benchmark benchmarks[];
extern const size_t benchmark_count;
extern const char *const benchmark_summary; /* of a program that runs them, for --help */
/* The class called @name, or CLASS_COUNT. */
extern const char *const class_names[CLASS_COUNT];
enum input_class class_find(const char *name);

/* Makes the plan of @benchmark with @size units. */
void plan_init(struct plan *plan, const struct benchmark *benchmark,
	       const struct workload *workload, uint32_t size);
/* For programs whose rounds are @passes of all launches behind each other: so often do buffers that
 * are added to have what the CPU computed. Once. */
void plan_expect(struct plan *plan, uint64_t passes);
void plan_deinit(struct plan *plan);

/* All launches, @repeat times behind each other, then the check of the last results: fails when one
 * is wrong. Kernels that have to be told to end are launched once. */
void plan_round(struct plan *plan, uint64_t repeat);
/* All launches once, into the samples; and the check, for itself. */
void plan_measure(struct plan *plan);
void plan_forget(struct plan *plan); /* the samples so far */
void plan_check(struct plan *plan);

/* For programs with their own rounds. plan_prepare() comes first, once, and waits. plan_renew()
 * queues the reset of buffers that kernels read and write; plan_queue() queues all launches. After
 * any number of such pairs plan_check() may be called. */
void plan_prepare(struct plan *plan);
void plan_renew(const struct plan *plan);
void plan_queue(struct plan *plan);
/* The first launch of @kernel, or NULL; and that launch alone, whose shape the caller may change.
 */
struct plan_launch *plan_find_launch(struct plan *plan, const char *kernel);
void plan_queue_launch(struct plan *plan, struct plan_launch *launch);

/* For a benchmark's plan(). Buffers live as long as the plan. */
struct buffer *plan_buffer(struct plan *plan, size_t bytes);
struct buffer *plan_mapped(struct plan *plan, size_t bytes);
/* Host memory for the contents before, and after: for the caller to fill in. */
void *buffer_input(struct buffer *buffer); /* kernels only read it */
void *buffer_start(struct buffer *buffer); /* they also write to it */
void *buffer_zeros(struct buffer *buffer); /* as buffer_start(), all 0 */
void *buffer_want(struct buffer *buffer);
/* Checked by the benchmark's own judge(). */
void buffer_keep(struct buffer *buffer);
/* Fills the module's variable @name. */
void plan_constant(struct plan *plan, const char *name, const void *data, size_t bytes);

struct argument {
	const void *value;
	size_t size;
};
#define ARGUMENT(v)                            \
	{                                      \
		&(__typeof__(v)){v}, sizeof(v) \
	}
/* Of a variable, also of a struct. */
#define ARGUMENT_OF(v)          \
	{                       \
		&(v), sizeof(v) \
	}
/* The launch of a kernel; each argument as ARGUMENT(x), a copy is taken. */
#define plan_launch(plan, kernel, shape, ...)                                        \
	plan_add_launch(plan, kernel, shape, (const struct argument[]){__VA_ARGS__}, \
			countof(((const struct argument[]){__VA_ARGS__})))
void plan_add_launch(struct plan *plan, const char *kernel, struct shape shape,
		     const struct argument *arguments, size_t count);

/* At least @n threads in blocks of @threads. */
static inline struct shape shape_line(uint64_t n, unsigned threads)
{
	return (struct shape){{(unsigned)((n + threads - 1) / threads), 1, 1}, {threads, 1, 1}, 0};
}
static inline struct shape shape_plane(uint32_t width, uint32_t height, unsigned x, unsigned y)
{
	return (struct shape){{(width + x - 1) / x, (height + y - 1) / y, 1}, {x, y, 1}, 0};
}
