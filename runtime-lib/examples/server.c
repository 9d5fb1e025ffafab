/* A server that tells Weir what it does: requests are announced, and work in the background gives
 * way to them, and to others. It runs without Weir as well.
 *
 *     cc -o server server.c -lcuda         (and -ldl where glibc is older than 2.34)
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#define REQUESTS 20

static const char ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
			  ".visible .entry work()\n{\n  ret;\n}\n";

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}

static void launch(CUfunction work, CUstream stream)
{
	check(cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), "launch");
}

static const char *text(int error)
{
	return error ? strerror(-error) : "done";
}

int main(void)
{
	CUstream requests, background;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction work;
	int expected = 0;

	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "device");
	check(cuDevicePrimaryCtxRetain(&context, device), "context");
	check(cuCtxSetCurrent(context), "context");
	check(cuModuleLoadData(&module, ptx), "module");
	check(cuModuleGetFunction(&work, module, "work"), "kernel");
	check(cuStreamCreate(&requests, CU_STREAM_NON_BLOCKING), "stream");
	check(cuStreamCreate(&background, CU_STREAM_NON_BLOCKING), "stream");

	printf("background at level low: %s\n",
	       text(weir_set_priority(background, WEIR_LEVEL_LOW)));
	for (int i = 0; i < REQUESTS; i++) {
		launch(work, background);
		/* A request has come. Its launch follows in its stream when it is decoded. */
		expected = weir_expect(requests, 250);
		usleep(300);
		launch(work, requests);
		check(cuStreamSynchronize(requests), "request");
	}
	check(cuCtxSynchronize(), "background");
	printf("requests announced: %s\nlevel and hints count: %s\n", text(expected),
	       weir_available() ? "yes" : "no");
	check(cuModuleUnload(module), "module");
	check(cuDevicePrimaryCtxRelease(device), "context");
	return 0;
}
