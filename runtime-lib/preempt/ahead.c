#include "preempt/ahead.h"

#include "client/level-binding.h"
#include "preempt/forms.h"
#include "preempt/new-code.h"
#include "shim/driver.h"

#include <string.h>

#define KERNELS_MAX 8u  /* of a module or library */
#define ALTOGETHER  64u /* of a process */
/* Programs load code when they launch its first kernel, which waits for its form alone. */
#define SETTLED (5 * NS_PER_MS) /* ns from the loading */

static uint32_t kernels; /* worker: asked for */

/* Handles as launches use them. 0: there are too many, or this driver does not list them. */
static unsigned list(const struct new_code *code, CUfunction out[KERNELS_MAX])
{
	unsigned n = 0;
	CUlibrary library = (CUlibrary)code->handle;
	CUmodule module = (CUmodule)code->handle;
	CUresult result = code->library ? real(cuLibraryGetKernelCount)(&n, library)
					: real(cuModuleGetFunctionCount)(&n, module);

	if (result != CUDA_SUCCESS || n > KERNELS_MAX)
		return 0;
	memset(out, 0, KERNELS_MAX * sizeof(*out));
	result = code->library ? real(cuLibraryEnumerateKernels)((CUkernel *)out, n, library)
			       : real(cuModuleEnumerateFunctions)(out, n, module);
	return result == CUDA_SUCCESS ? n : 0;
}

static void want(struct client *client, const struct new_code *code)
{
	CUfunction found[KERNELS_MAX];
	unsigned n = list(code, found);

	for (unsigned i = 0; i < n && kernels < ALTOGETHER; i++) {
		struct function *function = found[i] ? function_find(client, found[i]) : NULL;
		kernels += function && forms_want_ahead(function);
	}
}

void ahead_look(struct client *client, struct tick *tick)
{
	tick->forms |= tick->binding && binding_is_below(tick->binding) &&
		       !forms_are_awaited(client) && new_code_waits(client, tick->now - SETTLED);
}

void ahead_drive(struct client *client, struct tick *tick)
{
	struct new_code code;

	while (tick->binding && binding_is_below(tick->binding) && !forms_are_awaited(client) &&
	       new_code_take(client, tick->now - SETTLED, &code))
		want(client, &code);
}
