#include "object.h"

#include <stdlib.h>
#include <string.h>

#include <weir/base.h>
#include <weir/object.h>

#include "workload.h"

#define SAVE_ALIGN 256u

unsigned object_sm(CUdevice device)
{
	int major, minor;

	CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	return (unsigned)(10 * major + minor);
}

void object_load(struct object *object, const char *ptx, const char *kernel, enum weir_form form,
		 CUdevice device)
{
	struct weir_object_request request = {.image = ptx,
					      .len = strlen(ptx) + 1,
					      .kernel = kernel,
					      .sm = object_sm(device),
					      .forms = 1u << form};
	struct weir_error error;
	cleanup(freep) void *file = NULL;
	size_t len;

	if (weir_object_build(&file, &len, &request, &error))
		workload_fail("%s: line %u: %s", kernel, error.line, error.message);
	const char *bytes = file;
	const struct weir_object *header = file;
	const struct weir_object_form *row = (const void *)(bytes + header->forms);
	if (weir_object_check(file, len) || header->n_forms != 1)
		workload_fail("%s: not an object", kernel);
	if (!row->entry)
		workload_fail("%s: not %s: line %u: %s", kernel, weir_form_name(form), row->line,
			      bytes + row->reason);
	if (header->n_symbols)
		workload_fail("%s: it uses variables of its module", kernel);
	CU(cuModuleLoadData(&object->module, bytes + header->image));
	CU(cuModuleGetFunction(&object->function, object->module, bytes + row->entry));
	object->save_fixed = row->save_fixed;
	object->save_per_thread = row->save_per_thread;
}

void object_saves(const struct object *object, struct weir_persistent *hidden, uint32_t workers,
		  uint32_t threads)
{
	uint64_t size = object->save_fixed + (uint64_t)object->save_per_thread * threads;

	if (!size)
		return;
	hidden->save_stride = (size + SAVE_ALIGN - 1) / SAVE_ALIGN * SAVE_ALIGN;
	CUdeviceptr saves;
	CU(cuMemAlloc(&saves, hidden->save_stride * workers));
	hidden->saves = saves;
}
