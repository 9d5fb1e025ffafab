#include "form-text.h"

#include <weir/tickets.h>
#include <weir/transform.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTERS_MAX 255u /* of a thread */

struct names {
	char name[PLAN_KERNELS_MAX][128];
	unsigned count;
};

static void note_name(void *data, const struct weir_verdict *verdict)
{
	struct names *names = data;

	if (names->count < PLAN_KERNELS_MAX)
		snprintf(names->name[names->count++], sizeof(names->name[0]), "%s",
			 verdict->kernel);
}

static char *transform(const char *ptx, const char *benchmark,
		       const struct weir_transform_options *options)
{
	struct weir_error error;
	size_t len;
	char *out;

	if (weir_transform(&out, &len, ptx, strlen(ptx), options, &error))
		workload_fail("%s: line %u: %s", benchmark, error.line, error.message);
	return out;
}

/* Registers of a thread of the kernel. */
static unsigned registers_of(CUmodule module, const char *name)
{
	CUfunction function;
	int registers;

	CU(cuModuleGetFunction(&function, module, name));
	CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	return (unsigned)registers;
}

/* The persistent form of every kernel, without a limit on registers. */
static CUmodule load_free(const struct benchmark *benchmark)
{
	struct weir_transform_options options = {.forms = 1u << WEIR_PERSISTENT};
	char *ptx = transform(benchmark->ptx, benchmark->name, &options);
	CUmodule module;

	CU(cuModuleLoadData(&module, ptx));
	free(ptx);
	return module;
}

/* Registers of a thread of @kernel's persistent form in @module; 0: there is no such form. */
static unsigned registers_free(CUmodule module, const char *kernel)
{
	char name[256];
	CUfunction function;
	int registers;

	snprintf(name, sizeof(name), "%s%s", kernel, weir_form_suffix(WEIR_PERSISTENT));
	if (cuModuleGetFunction(&function, module, name) != CUDA_SUCCESS)
		return 0;
	CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	return (unsigned)registers;
}

/* The limit on registers; 0: none is needed. */
static unsigned limit(unsigned native, unsigned freely, unsigned more)
{
	unsigned registers = weir_registers_max(native) + more;

	return (!more && freely <= registers) || registers > REGISTERS_MAX ? 0 : registers;
}

static void note_save(void *data, const struct weir_verdict *verdict)
{
	struct form_saves *saves = data;
	struct form_save *save = &saves->of[saves->count];

	if (verdict->form != WEIR_RESUMABLE || saves->count == PLAN_KERNELS_MAX)
		return;
	snprintf(save->name, sizeof(save->name), "%s", verdict->kernel);
	save->fixed = verdict->save_fixed;
	save->per_thread = verdict->save_per_thread;
	saves->count++;
}

char *form_text(const struct benchmark *benchmark, unsigned more, struct form_saves *saves)
{
	struct names names = {0};
	struct weir_transform_options options = {
		.forms = 1u << WEIR_SLICED, .verdict = note_name, .data = &names};
	char *ptx = transform(benchmark->ptx, benchmark->name, &options);
	CUmodule module, freely = load_free(benchmark);

	CU(cuModuleLoadData(&module, benchmark->ptx));
	options = (struct weir_transform_options){.verdict = note_save, .data = saves};
	for (unsigned i = 0; i < 2 * names.count; i++) {
		char *before = ptx;
		unsigned registers;

		options.kernel = names.name[i / 2];
		registers = limit(registers_of(module, options.kernel),
				  registers_free(freely, options.kernel), more);
		options.forms = 1u << (i % 2 ? WEIR_RESUMABLE : WEIR_PERSISTENT);
		options.registers_max = i % 2 ? 0 : registers;
		ptx = transform(before, benchmark->name, &options);
		free(before);
	}
	CU(cuModuleUnload(module));
	CU(cuModuleUnload(freely));
	return ptx;
}
