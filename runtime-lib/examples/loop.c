/* The host side of loop.cu: says how many lines a file has.
 *
 *     cc -o loop loop.c -lweir-loop -luring -lcuda -ldl -lpthread
 *     ./loop loop.ptx FILE
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/loop.h>

#define BLOCKS 2
#define PART   (64 << 10) /* as in loop.cu */

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}

/* A kernel and its memory. */
struct job {
	CUfunction kernel;
	CUdeviceptr path, buffer, lines;
};

static void prepare(struct job *job, const char *ptx, const char *path)
{
	size_t length = strlen(path) + 1;
	CUdevice device;
	CUcontext context;
	CUmodule module;

	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "device");
	check(cuDevicePrimaryCtxRetain(&context, device), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuModuleLoad(&module, ptx), ptx);
	check(cuModuleGetFunction(&job->kernel, module, "count_lines"), "kernel");
	check(cuMemAlloc(&job->path, length), "memory");
	check(cuMemcpyHtoD(job->path, path, length), "copy");
	check(cuMemAlloc(&job->buffer, BLOCKS * PART), "memory");
	check(cuMemAlloc(&job->lines, sizeof(unsigned long long)), "memory");
	check(cuMemsetD8(job->lines, 0, sizeof(unsigned long long)), "memory");
	check(cuCtxSynchronize(), "context");
}

int main(int argc, char **argv)
{
	const struct weir_loop_options options = {.blocks = BLOCKS, .threads = 256};
	unsigned long long lines;
	struct weir_loop *loop;
	struct job job;
	int code = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: loop PTX FILE\n");
		return 2;
	}
	prepare(&job, argv[1], argv[2]);
	if (weir_loop_new(&loop, job.kernel, &options)) {
		fprintf(stderr, "loop: %s\n", weir_loop_error(NULL));
		return 1;
	}
	void *params[] = {NULL, &job.path, &job.buffer, &job.lines};
	if (weir_loop_run(loop, params, &code)) {
		fprintf(stderr, "loop: %s\n", weir_loop_error(loop));
		return 1;
	}
	weir_loop_free(loop);
	check(cuMemcpyDtoH(&lines, job.lines, sizeof(lines)), "copy");
	if (code)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(code));
	else
		printf("%llu\n", lines);
	return code != 0;
}
