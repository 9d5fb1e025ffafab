#include "fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture fx;

#define CU(call) assert_int_equal((call), CUDA_SUCCESS)

int fixture_begin(void **state)
{
	CUdevice device;
	CUcontext context;

	(void)state;
	snprintf(fx.folder, sizeof(fx.folder), "/tmp/weir-loop-XXXXXX");
	if (!mkdtemp(fx.folder))
		return -1;
	setenv("WEIR_SIM_DIR", fx.folder, 1);
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoad(&fx.module, LOOP_KERNELS));
	CU(cuMemAlloc(&fx.out, OUT_WORDS * sizeof(uint64_t)));
	CU(cuMemAlloc(&fx.text, TEXT_SIZE));
	return 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

int fixture_end(void **state)
{
	CUdevice device;

	(void)state;
	CU(cuMemFree(fx.out));
	CU(cuMemFree(fx.text));
	CU(cuModuleUnload(fx.module));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRelease(device));
	nftw(fx.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

void fixture_text(size_t offset, const char *text)
{
	CU(cuMemcpyHtoD(fx.text + offset, text, strlen(text) + 1));
}

const char *fixture_path(const char *name)
{
	static char path[2][128];
	static unsigned turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", fx.folder, name);
	return path[turn];
}

struct weir_loop *fixture_new(const char *kernel, const struct weir_loop_options *options)
{
	struct weir_loop *loop;
	CUfunction function;

	CU(cuModuleGetFunction(&function, fx.module, kernel));
	int r = weir_loop_new(&loop, function, options);
	if (r)
		fail_msg("weir_loop_new: %d, %s", r, weir_loop_error(NULL));
	return loop;
}

int fixture_finish(struct weir_loop *loop, uint64_t n)
{
	CU(cuMemsetD8(fx.out, 0, 64 * sizeof(uint64_t)));
	CU(cuCtxSynchronize());
	int r = weir_loop_run(loop, (void *[]){NULL, &fx.out, &fx.text, &n}, &fx.code);
	if (r)
		print_message("# weir_loop_run: %d %s\n", r, weir_loop_error(loop));
	weir_loop_stats(loop, &fx.stats);
	weir_loop_free(loop);
	CU(cuMemcpyDtoH(fx.seen, fx.out, sizeof(fx.seen)));
	return r;
}

int fixture_run(const char *kernel, const struct weir_loop_options *options, uint64_t n)
{
	return fixture_finish(fixture_new(kernel, options), n);
}
