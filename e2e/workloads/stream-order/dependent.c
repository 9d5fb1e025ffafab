/* Steps with programmatic dependence: each lets the next one begin, and waits for the one before.
 * The PTX needs a newer GPU than the other kernels. */
#include "workloads/stream-order/ops.h"

#define FIRST_MAJOR 9 /* compute capability */

static const char ptx[] =
	".version 7.8\n.target sm_90\n.address_size 64\n"
	".visible .entry step(.param .u64 data, .param .u32 words, .param .u32 multiply,\n"
	"	.param .u32 add, .param .u32 delay)\n{\n"
	"	.reg .b32 %i, %n, %x, %m, %a;\n	.reg .b64 %d, %o;\n	.reg .pred %p;\n"
	"	mov.u32 %i, %ctaid.x;\n	mov.u32 %n, %ntid.x;\n	mov.u32 %x, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %x;\n	ld.param.u32 %n, [words];\n"
	"	setp.ge.u32 %p, %i, %n;\n	@%p ret;\n"
	"	griddepcontrol.launch_dependents;\n	griddepcontrol.wait;\n"
	"	ld.param.u64 %d, [data];\n	mul.wide.u32 %o, %i, 4;\n	add.u64 %d, %d, "
	"%o;\n"
	"	ld.global.u32 %x, [%d];\n	ld.param.u32 %n, [delay];\n"
	"AGAIN:\n	setp.eq.u32 %p, %n, 0;\n	@%p bra DONE;\n"
	"	mad.lo.u32 %x, %x, 1664525, 1013904223;\n	sub.u32 %n, %n, 1;\n	bra "
	"AGAIN;\n"
	"DONE:\n	ld.param.u32 %m, [multiply];\n	ld.param.u32 %a, [add];\n"
	"	mad.lo.u32 %x, %x, %m, %a;\n	st.global.u32 [%d], %x;\n	ret;\n}\n";

CUfunction dependent_kernel(void)
{
	CUmodule module;
	CUfunction function;
	CUdevice device;
	int major;

	CU(cuCtxGetDevice(&device));
	CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	if (major < FIRST_MAJOR)
		return NULL;
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&function, module, "step"));
	return function;
}

static void launch(struct run *run, struct checked_stream *checked, int depends)
{
	struct target to = checked_stream_target(checked);
	struct action action = action_random(&run->kit);
	uint32_t words = STREAM_WORDS;
	void *parameters[] = {&checked->data, &words, &action.multiply, &action.add, &action.delay};
	/* The second one is the default, but libweir launches no form with it. So launches in forms
	 * and native ones depend on each other. */
	CUlaunchAttribute attributes[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		 .value.programmaticStreamSerializationAllowed = depends},
		{.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
		 .value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT}};
	CUlaunchConfig config = {.gridDimX = STREAM_WORDS / STEP_THREADS,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = STEP_THREADS,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = to.stream,
				 .attrs = attributes,
				 .numAttrs = 1 + random_below(&run->kit.random, 2)};

	action.kind = ACTION_STEP;
	CU(to.calls->launch_kernel_ex(&config, run->kit.dependent, parameters, NULL));
	action_expect(checked, &action);
}

void operation_dependent(struct run *run, struct checked_stream *checked)
{
	if (!run->kit.dependent)
		return;
	for (uint32_t n = 1 + random_below(&run->kit.random, 4); n; n--)
		launch(run, checked, random_below(&run->kit.random, 4) != 0);
}
