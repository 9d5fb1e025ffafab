/* Code that is made while the program runs: each round writes PTX that nobody has seen into a file
 * and loads that with the driver API (cuModuleLoad). */
#include "program.cuh"

#include <cuda.h>

#define THREADS 256u
#define FACTOR  5u

#define DRIVER(call)                                                                          \
	do {                                                                                  \
		CUresult result_ = (call);                                                    \
		if (result_ != CUDA_SUCCESS)                                                  \
			fail("%s:%d: %s: error %d", __FILE__, __LINE__, #call, (int)result_); \
	} while (0)

/* value = value * FACTOR + i, so often; %s: the kernel's name. */
static const char text[] = R"(
.version 6.4
.target sm_75
.address_size 64
.visible .entry %s(.param .u64 values, .param .u32 times)
{
	.reg .pred %%p;
	.reg .b32 %%r<8>;
	.reg .b64 %%rd<4>;
	ld.param.u64 %%rd1, [values];
	ld.param.u32 %%r1, [times];
	mov.u32 %%r2, %%ctaid.x;
	mov.u32 %%r3, %%ntid.x;
	mov.u32 %%r4, %%tid.x;
	mad.lo.u32 %%r5, %%r2, %%r3, %%r4;
	cvta.to.global.u64 %%rd2, %%rd1;
	mad.wide.u32 %%rd2, %%r5, 4, %%rd2;
	ld.global.u32 %%r6, [%%rd2];
AGAIN:
	mad.lo.u32 %%r6, %%r6, %u, %%r5;
	sub.u32 %%r1, %%r1, 1;
	setp.ne.u32 %%p, %%r1, 0;
	@%%p bra AGAIN;
	st.global.u32 [%%rd2], %%r6;
	ret;
}
)";

static std::string written_module(const std::string &kernel)
{
	char path[] = "/tmp/module-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? nullptr : fdopen(fd, "w");

	if (!file || fprintf(file, text, kernel.c_str(), FACTOR) < 0 || fclose(file))
		fail("%s cannot be written", path);
	return path;
}

static void scale(CUdeviceptr values, unsigned n, unsigned times)
{
	static unsigned serial;
	std::string kernel = "scale_" + std::to_string(getpid()) + "_" + std::to_string(serial++);
	std::string path = written_module(kernel);
	void *parameters[] = {&values, &times};
	CUmodule module;
	CUfunction function;

	DRIVER(cuModuleLoad(&module, path.c_str()));
	unlink(path.c_str());
	DRIVER(cuModuleGetFunction(&function, module, kernel.c_str()));
	DRIVER(cuLaunchKernel(function, n / THREADS, 1, 1, THREADS, 1, 1, 0, nullptr, parameters,
			      nullptr));
	DRIVER(cuCtxSynchronize());
	DRIVER(cuModuleUnload(module));
}

int main(int argc, char **argv)
{
	program program("runtime-module", argc, argv);
	unsigned n = THREADS * program.size(2, 1024), times = program.size(20, 2000);
	std::vector<uint32_t> input(n), expected(n);
	device_array<uint32_t> values(n);

	for (unsigned i = 0; i < n; i++) {
		input[i] = expected[i] = mixed(i);
		for (unsigned k = 0; k < times; k++)
			expected[i] = expected[i] * FACTOR + i;
	}
	while (program.goes_on()) {
		values.set(input);
		scale((CUdeviceptr)values.data, n, times);
		program.check(values.get(), expected);
	}
	return program.right();
}
