/* Appends the hidden parameter: a struct of preempt-abi.h, followed by the addresses of the
 * variables that a detached kernel uses. */
#include "passes/detach.h"
#include "passes/pass.h"

/* Limits of a kernel's parameter bytes; PTX 8.1 raised the limit for all its targets. */
#define PARAMETERS_MAX     4096u
#define PARAMETERS_MAX_8_1 32764u

#define HIDDEN_ALIGN 8u

static uint64_t parameters_max(const struct module *module)
{
	return pass_has_isa(module, 8, 1) ? PARAMETERS_MAX_8_1 : PARAMETERS_MAX;
}

/* The size of the parameters, at most @max. */
static uint64_t parameter_bytes(const struct function *f, uint64_t max)
{
	uint64_t bytes = 0;

	for (const struct variable *v = f->params; v; v = v->next) {
		uint64_t align = variable_align(v);

		if (v->size > max || align > max)
			return max;
		bytes = (bytes + align - 1) / align * align + v->size;
		if (bytes > max)
			return max;
	}
	return (bytes + HIDDEN_ALIGN - 1) / HIDDEN_ALIGN * HIDDEN_ALIGN;
}

size_t hidden_size(const struct form *form)
{
	return form->id == WEIR_SLICED ? sizeof(struct weir_slice) : sizeof(struct weir_persistent);
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	uint64_t max = parameters_max(f->module);
	uint64_t size = hidden_size(rewrite->form);

	if (rewrite->detached)
		size += (uint64_t)rewrite->detached->addresses.count * sizeof(uint64_t);
	if (parameter_bytes(f, max) + size > max)
		pass_refuse(rewrite, f->at, "no room for the hidden parameter");
	rewrite->hidden = edit_parameter_bytes(f, edit_fresh_name(f, "hidden"), HIDDEN_ALIGN, size);
}

const struct pass pass_params = {"params", run};
