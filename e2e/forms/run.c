#include "run.h"

#include "launch.h"
#include "persistent.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMS (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)

static void remember(void *data, const struct weir_verdict *verdict)
{
	struct run *run = data;

	if (strcmp(verdict->kernel, run->problem->kernel) != 0)
		return;
	run->has[verdict->form] = verdict->eligible;
	if (verdict->form == WEIR_RESUMABLE) {
		run->save_fixed = verdict->save_fixed;
		run->save_per_thread = verdict->save_per_thread;
	}
	if (!verdict->eligible)
		snprintf(run->message, sizeof(run->message), "%s: %s",
			 weir_form_name(verdict->form), verdict->reason);
}

/* Runs random boxes of consecutive blocks that cover the grid. */
static bool run_sliced(struct run *run, uint32_t *out)
{
	struct ptx_dim grid = run->problem->grid;
	struct weir_slice slice = {.grid = {grid.x, grid.y, grid.z}};
	struct launch launch;

	for (slice.first[2] = 0; slice.first[2] < grid.z; slice.first[2]++) {
		for (slice.first[1] = 0; slice.first[1] < grid.y;) {
			uint32_t rows = 1 + random_below(&run->random, grid.y - slice.first[1]);
			uint32_t columns = 0;

			for (slice.first[0] = 0; slice.first[0] < grid.x;
			     slice.first[0] += columns) {
				columns = 1 + random_below(&run->random, grid.x - slice.first[0]);
				launch_init(&launch, run, WEIR_SLICED, out, &slice, sizeof(slice));
				launch.ptx.grid = (struct ptx_dim){columns, rows, 1};
				launch_blocks(&launch);
				if (!launch_is_good(&launch, "sliced"))
					return false;
			}
			slice.first[1] += rows;
		}
	}
	return true;
}

bool run_form(struct run *run, enum weir_form form)
{
	uint32_t *memory = calloc(run->problem->out_words + 1, sizeof(*memory)), *out;
	bool good = false;

	if (memory) {
		out = launch_results(run, memory);
		good = form == WEIR_SLICED
			       ? run_sliced(run, out) && launch_agrees(run, "sliced", out)
			       : run_persistent(run, form, out);
	}
	free(memory);
	return good;
}

static bool load_text(struct run *run, struct ptx_module **out, const char *text, size_t len)
{
	struct ptx_error why;

	if (ptx_module_load(out, text, len, &why))
		snprintf(run->message, sizeof(run->message), "rewritten, line %d: %.300s", why.line,
			 why.message);
	return *out;
}

static bool load_error(struct run *run, const struct weir_error *error)
{
	snprintf(run->message, sizeof(run->message), "line %u: %s", error->line, error->message);
	return false;
}

/* The forms beside the original. */
static bool load_beside(struct run *run)
{
	struct weir_transform_options options = {
		.forms = FORMS, .kernel = run->problem->kernel, .verdict = remember, .data = run};
	struct weir_error error;
	char *text;
	size_t len;
	bool good;

	if (weir_transform(&text, &len, run->problem->ptx, strlen(run->problem->ptx), &options,
			   &error))
		return load_error(run, &error);
	good = load_text(run, &run->module, text, len);
	free(text);
	return good;
}

static bool load_detached(struct run *run)
{
	const struct weir_object_request request = {.image = run->problem->ptx,
						    .len = strlen(run->problem->ptx),
						    .kernel = run->problem->kernel,
						    .sm = 90,
						    .forms = FORMS};
	const struct weir_object_form *forms;
	struct weir_error error;
	size_t size;

	if (weir_object_build((void **)&run->object, &size, &request, &error))
		return load_error(run, &error);
	if (weir_object_check(run->object, size)) {
		snprintf(run->message, sizeof(run->message), "a bad object");
		return false;
	}
	forms = in_object(run, run->object->forms);
	for (uint32_t k = 0; k < run->object->n_forms; k++)
		remember(run, &(struct weir_verdict){.kernel = run->problem->kernel,
						     .form = forms[k].form,
						     .eligible = forms[k].entry,
						     .save_fixed = forms[k].save_fixed,
						     .save_per_thread = forms[k].save_per_thread,
						     .reason = in_object(run, forms[k].reason)});
	return load_text(run, &run->module, run->problem->ptx, strlen(run->problem->ptx)) &&
	       (!run->object->image_size ||
		load_text(run, &run->own, in_object(run, run->object->image),
			  run->object->image_size - 1));
}

bool run_init(struct run *run, const struct problem *problem, uint64_t seed)
{
	struct launch launch;
	uint32_t *out;

	*run = (struct run){.problem = problem, .random = seed};
	run->want = calloc(problem->out_words + 1, sizeof(*run->want));
	if (!run->want || !(problem->detached ? load_detached(run) : load_beside(run)))
		return false;
	out = launch_results(run, run->want);
	launch_init(&launch, run, WEIR_NATIVE, out, NULL, 0);
	launch_blocks(&launch);
	memmove(run->want, out, problem->out_words * sizeof(*out));
	return launch_is_good(&launch, "native");
}

void run_deinit(struct run *run)
{
	if (run->module)
		ptx_module_free(run->module);
	if (run->own)
		ptx_module_free(run->own);
	free(run->object);
	free(run->want);
}
