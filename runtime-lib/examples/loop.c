/* The host side of loop.cu, and of the kernels in runtime-lib/loop/README.md: gives a kernel a
 * text, memory for each block and a number, and prints the number.
 *
 *     cc -o loop loop.c -lweir-loop -luring -lcuda -ldl -lpthread
 *     ./loop loop.ptx count_lines FILE
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/loop.h>

#define BLOCKS 2
#define PART   (64 << 10) /* bytes of memory for each block, as in loop.cu */

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
	CUdeviceptr text, buffer, number;
};

static void prepare(struct job *job, const char *ptx, const char *kernel, const char *text)
{
	size_t length = strlen(text) + 1;
	CUdevice device;
	CUcontext context;
	CUmodule module;

	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "device");
	check(cuDevicePrimaryCtxRetain(&context, device), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuModuleLoad(&module, ptx), ptx);
	check(cuModuleGetFunction(&job->kernel, module, kernel), kernel);
	check(cuMemAlloc(&job->text, length), "memory");
	check(cuMemcpyHtoD(job->text, text, length), "copy");
	check(cuMemAlloc(&job->buffer, BLOCKS * PART), "memory");
	check(cuMemsetD8(job->buffer, 0, BLOCKS * PART), "memory");
	check(cuMemAlloc(&job->number, sizeof(unsigned long long)), "memory");
	check(cuMemsetD8(job->number, 0, sizeof(unsigned long long)), "memory");
	check(cuCtxSynchronize(), "context");
}

/* Function 0 of host::call(). */
static int64_t say(void *user, void *data, uint64_t size)
{
	(void)user;
	fprintf(stderr, "the GPU says: %.*s\n", (int)size, (const char *)data);
	return 0;
}

int main(int argc, char **argv)
{
	const weir_loop_function functions[] = {say};
	const struct weir_loop_options options = {.blocks = BLOCKS,
						  .threads = 256,
						  .functions = functions,
						  .n_functions = 1,
						  .name = "example"};
	unsigned long long number;
	struct weir_loop *loop;
	struct job job;
	int code = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: loop PTX KERNEL TEXT\n");
		return 2;
	}
	prepare(&job, argv[1], argv[2], argv[3]);
	if (weir_loop_new(&loop, job.kernel, &options)) {
		fprintf(stderr, "loop: %s\n", weir_loop_error(NULL));
		return 1;
	}
	void *params[] = {NULL, &job.text, &job.buffer, &job.number};
	if (weir_loop_run(loop, params, &code)) {
		fprintf(stderr, "loop: %s\n", weir_loop_error(loop));
		return 1;
	}
	weir_loop_free(loop);
	check(cuMemcpyDtoH(&number, job.number, sizeof(number)), "copy");
	if (code)
		fprintf(stderr, "%s: %s\n", argv[3], strerror(code));
	else
		printf("%llu\n", number);
	return code != 0;
}
