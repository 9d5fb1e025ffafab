/* What the tests of the simulated driver share: a machine of their own, a context, and a module of
 * small kernels. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weir/base.h"

#define ok(call)                 assert_int_equal(call, CUDA_SUCCESS)
#define fails(call, error)       assert_int_equal(call, error)
#define pointer_to(object)       ((CUdeviceptr)(uintptr_t)(object))
#define set_word(pointer, value) __atomic_store_n(pointer, value, __ATOMIC_SEQ_CST)
#define get_word(pointer)        __atomic_load_n(pointer, __ATOMIC_SEQ_CST)

/* add(p, v): one thread of each block adds v to *p.
 * append(list, v): list[1 + list[0]++] = v, by the first thread of the first block.
 * late(list, v): the same, after a while.
 * hold(flag, p): the first thread of each block waits until *flag is not 0, then adds 1 to *p.
 * meet(p, n): each block adds 1 to *p and waits until it is n.
 * wild(p): writes where no memory is.
 * whoami(list): list[block] = SM. */
static const char test_ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 7;\n"
	".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
	" .reg .pred %p;\n .reg .u32 %t, %v, %o;\n .reg .u64 %a;\n"
	" mov.u32 %t, %tid.x;\n setp.ne.u32 %p, %t, 0;\n @%p bra DONE;\n"
	" ld.param.u64 %a, [p];\n ld.param.u32 %v, [v];\n"
	" atom.global.add.u32 %o, [%a], %v;\n"
	"DONE:\n ret;\n}\n"
	".visible .entry append(.param .u64 list, .param .u32 v)\n{\n"
	" .reg .u32 %v, %o;\n .reg .u64 %a, %i;\n"
	" ld.param.u64 %a, [list];\n ld.param.u32 %v, [v];\n"
	" atom.global.add.u32 %o, [%a], 1;\n mul.wide.u32 %i, %o, 4;\n"
	" add.u64 %a, %a, %i;\n st.global.u32 [%a+4], %v;\n ret;\n}\n"
	".visible .entry late(.param .u64 list, .param .u32 v)\n{\n"
	" .reg .u32 %v, %o;\n .reg .u64 %a, %i;\n"
	" .reg .pred %p;\n .reg .u32 %n;\n mov.u32 %n, 0;\nAGAIN:\n nanosleep.u32 1000;\n add.u32 "
	"%n, %n, 1;\n"
	" setp.lt.u32 %p, %n, 300;\n @%p bra AGAIN;\n ld.param.u64 %a, [list];\n ld.param.u32 %v, "
	"[v];\n"
	" atom.global.add.u32 %o, [%a], 1;\n mul.wide.u32 %i, %o, 4;\n"
	" add.u64 %a, %a, %i;\n st.global.u32 [%a+4], %v;\n ret;\n}\n"
	".visible .entry hold(.param .u64 flag, .param .u64 p)\n{\n"
	" .reg .pred %p;\n .reg .u32 %v, %o;\n .reg .u64 %f, %a;\n"
	" ld.param.u64 %f, [flag];\n ld.param.u64 %a, [p];\n"
	"AGAIN:\n nanosleep.u32 20000;\n ld.volatile.global.u32 %v, [%f];\n"
	" setp.eq.u32 %p, %v, 0;\n @%p bra AGAIN;\n"
	" atom.global.add.u32 %o, [%a], 1;\n ret;\n}\n"
	".visible .entry meet(.param .u64 p, .param .u32 n)\n{\n"
	" .reg .pred %p;\n .reg .u32 %v, %o, %n;\n .reg .u64 %a;\n"
	" ld.param.u64 %a, [p];\n ld.param.u32 %n, [n];\n"
	" atom.global.add.u32 %o, [%a], 1;\n"
	"AGAIN:\n nanosleep.u32 20000;\n ld.volatile.global.u32 %v, [%a];\n"
	" setp.lt.u32 %p, %v, %n;\n @%p bra AGAIN;\n ret;\n}\n"
	".visible .entry wild(.param .u64 p)\n{\n"
	" .reg .u64 %a;\n ld.param.u64 %a, [p];\n st.global.u32 [%a], 1;\n ret;\n}\n"
	".visible .entry whoami(.param .u64 list)\n{\n"
	" .reg .u32 %b, %s;\n .reg .u64 %a, %i;\n"
	" ld.param.u64 %a, [list];\n mov.u32 %b, %ctaid.x;\n mov.u32 %s, %smid;\n"
	" mul.wide.u32 %i, %b, 4;\n add.u64 %a, %a, %i;\n st.global.u32 [%a], %s;\n ret;\n}\n";

struct fixture {
	CUcontext ctx;
	CUmodule module;
	CUfunction add, append, late, hold, meet, wild, whoami;
	CUdeviceptr memory; /* 4 KiB of zeros */
	uint32_t *host;     /* 4 KiB of zeros that the device may use */
};

static struct fixture fx;

static inline int setup(void **state)
{
	CUdevice dev;
	const struct {
		const char *name;
		CUfunction *function;
	} functions[] = {{"late", &fx.late},    {"add", &fx.add},   {"append", &fx.append},
			 {"hold", &fx.hold},    {"meet", &fx.meet}, {"wild", &fx.wild},
			 {"whoami", &fx.whoami}};

	(void)state;
	ok(cuInit(0));
	ok(cuDeviceGet(&dev, 0));
	ok(cuCtxCreate(&fx.ctx, NULL, 0, dev));
	ok(cuModuleLoadData(&fx.module, test_ptx));
	for (size_t i = 0; i < countof(functions); i++)
		ok(cuModuleGetFunction(functions[i].function, fx.module, functions[i].name));
	ok(cuMemAlloc(&fx.memory, 4096));
	ok(cuMemsetD8(fx.memory, 0, 4096));
	ok(cuMemHostAlloc((void **)&fx.host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(fx.host, 0, 4096);
	ok(cuCtxSynchronize());
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	ok(cuCtxDestroy(fx.ctx));
	return 0;
}

static inline CUresult launch2(CUfunction f, unsigned blocks, CUstream stream, void *a, void *b)
{
	void *params[] = {a, b};

	return cuLaunchKernel(f, blocks, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline void add(CUstream stream, unsigned blocks, uint32_t value)
{
	ok(launch2(fx.add, blocks, stream, &fx.memory, &value));
}

/* Appends @value to the list in host memory. */
static inline void append(CUstream stream, uint32_t value)
{
	CUdeviceptr list = pointer_to(fx.host + 512);

	ok(launch2(fx.append, 1, stream, &list, &value));
}

static inline uint32_t list_at(size_t i)
{
	return fx.host[513 + i];
}

/* Blocks that stay until host word 0 is not 0, and then add 1 to host word 1. */
static inline void hold(CUstream stream, unsigned blocks)
{
	CUdeviceptr flag = pointer_to(fx.host), p = pointer_to(fx.host + 1);

	ok(launch2(fx.hold, blocks, stream, &flag, &p));
}

static inline uint32_t device_word(size_t i)
{
	uint32_t word;

	ok(cuMemcpyDtoH(&word, fx.memory + 4 * i, 4));
	return word;
}

static inline CUstream new_stream(unsigned flags)
{
	CUstream stream;

	ok(cuStreamCreate(&stream, flags));
	return stream;
}

/* Creates a machine without other processes. Call it before cuInit(). */
static inline void own_machine(const char *sms, const char *memory)
{
	static char folder[] = "/tmp/weir-sim-XXXXXX";

	if (!mkdtemp(folder))
		abort();
	setenv("WEIR_SIM_DIR", folder, 1);
	setenv("WEIR_SIM_SMS", sms, 1);
	setenv("WEIR_SIM_MEMORY", memory, 1);
	setenv("WEIR_SIM_GPUS", "1", 1);
	setenv("WEIR_SIM_BLOCK_US", "0", 1);
}

static inline void remove_machine(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", getenv("WEIR_SIM_DIR"));
	if (system(command))
		fprintf(stderr, "%s failed\n", command);
}
