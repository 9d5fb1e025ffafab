#include "launch.h"

#include <stdio.h>
#include <string.h>

/* A poller goes on while the threads of other workers wait for a processor. */
#define INSTRUCTIONS_MAX 2000000000

static struct ptx_kernel *kernel_of(const struct run *run, enum weir_form form)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", run->problem->kernel,
		 form == WEIR_NATIVE ? "" : weir_form_suffix(form));
	return ptx_module_kernel(run->own && form != WEIR_NATIVE ? run->own : run->module, name);
}

static void set_parameter(struct launch *launch, size_t index, const void *data, size_t size)
{
	struct ptx_param p = ptx_kernel_param(launch->kernel, index);

	memcpy(launch->parameters + p.offset, data, size < p.size ? size : p.size);
}

/* Fills in what follows the hidden struct (parameter @index): addresses of the program's variables.
 * Copies constants. */
static void set_symbols(struct launch *launch, size_t index, size_t hidden_size)
{
	const struct run *run = launch->run;
	const struct weir_object_symbol *s = in_object(run, run->object->symbols);
	struct ptx_param p = ptx_kernel_param(launch->kernel, index);
	uint8_t *to = launch->parameters + p.offset + hidden_size;

	for (uint32_t k = 0; k < run->object->n_symbols; k++) {
		void *address, *copy;
		size_t size;

		ptx_module_global(run->module, in_object(run, s[k].name), &address, &size);
		if (s[k].space == WEIR_OBJECT_GLOBAL) {
			memcpy(to + k * sizeof(address), &address, sizeof(address));
			continue;
		}
		ptx_module_global(run->own, in_object(run, s[k].copy), &copy, &size);
		memcpy(copy, address, s[k].size);
	}
}

void launch_init(struct launch *launch, struct run *run, enum weir_form form, uint32_t *out,
		 const void *hidden, size_t hidden_size)
{
	const struct problem *problem = run->problem;
	size_t own;

	*launch = (struct launch){.run = run, .kernel = kernel_of(run, form)};
	launch->ptx = (struct ptx_launch){.grid = problem->grid,
					  .block = problem->block,
					  .dynamic_shared = problem->dynamic_shared,
					  .params = launch->parameters,
					  .sm_count = SMS,
					  .max_instructions = INSTRUCTIONS_MAX};
	own = ptx_kernel_param_count(launch->kernel) - (hidden ? 1 : 0);
	if (own > 0)
		set_parameter(launch, 0, &out, sizeof(out));
	if (own > 1)
		set_parameter(launch, 1, &problem->in, sizeof(problem->in));
	if (own > 2)
		set_parameter(launch, 2, &problem->n, sizeof(problem->n));
	if (hidden)
		set_parameter(launch, own, hidden, hidden_size);
	if (hidden && run->object)
		set_symbols(launch, own, hidden_size);
}

uint32_t *launch_results(struct run *run, uint32_t *out)
{
	void *address = out;
	size_t size;

	if (run->problem->global)
		ptx_module_global(run->module, run->problem->global, &address, &size);
	return memset(address, 0, run->problem->out_words * sizeof(*out));
}

void *launch_blocks(void *data)
{
	struct launch *launch = data;
	uint64_t block;

	while ((block = launch->next++) < blocks_of(launch->ptx.grid)) {
		struct ptx_error why;
		int r = ptx_run_block(launch->kernel, &launch->ptx, block, block % SMS, NULL, &why,
				      NULL);

		if (!r)
			continue;
		launch->error = r;
		launch->why = why;
	}
	return NULL;
}

bool launch_is_good(const struct launch *launch, const char *what)
{
	struct run *run = launch->run;

	if (launch->error)
		snprintf(run->message, sizeof(run->message), "%s: %s, line %d: %.300s", what,
			 strerror(-launch->error), launch->why.line, launch->why.message);
	return !launch->error;
}

bool launch_agrees(struct run *run, const char *what, const uint32_t *out)
{
	for (uint32_t k = 0; k < run->problem->out_words; k++) {
		if (out[k] == run->want[k])
			continue;
		snprintf(run->message, sizeof(run->message), "%s: word %u of %u is %#x, not %#x",
			 what, k, run->problem->out_words, out[k], run->want[k]);
		return false;
	}
	return true;
}
