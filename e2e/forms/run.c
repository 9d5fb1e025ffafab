#include "run.h"

#include "random.h"

#include "weir/tickets.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS      3
#define WORKERS_MAX  7
#define LAUNCHES_MAX 100000
/* A poller goes on while the threads of other workers wait for a processor. */
#define INSTRUCTIONS_MAX 2000000000
/* In the save of a group (transformer/passes/safe-point.h). */
#define SAVED_TICKETS    16
#define SAVED_TICKETS_AT 32
#define PARAMETERS_MAX   256
#define SMS              4
#define FORMS            (1u << WEIR_SLICED | 1u << WEIR_PERSISTENT | 1u << WEIR_RESUMABLE)

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

static struct ptx_kernel *kernel_of(const struct run *run, enum weir_form form)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", run->problem->kernel,
		 form == WEIR_NATIVE ? "" : weir_form_suffix(form));
	return ptx_module_kernel(run->own && form != WEIR_NATIVE ? run->own : run->module, name);
}

/* A launch or a continuation. */
struct launch {
	struct run *run;
	const struct ptx_kernel *kernel;
	struct ptx_launch ptx;
	uint8_t parameters[PARAMETERS_MAX];
	_Atomic uint64_t next; /* next block to run */
	_Atomic int error;
	struct ptx_error why;
};

static void set_parameter(struct launch *launch, size_t index, const void *data, size_t size)
{
	struct ptx_param p = ptx_kernel_param(launch->kernel, index);

	memcpy(launch->parameters + p.offset, data, size < p.size ? size : p.size);
}

static const void *in_object(const struct run *run, uint32_t offset)
{
	return (const char *)run->object + offset;
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

/* @hidden: the last parameter of the form. */
static void launch_init(struct launch *launch, struct run *run, enum weir_form form, uint32_t *out,
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

/* The memory that the kernel writes: @out, or a variable. */
static uint32_t *results(struct run *run, uint32_t *out)
{
	void *address = out;
	size_t size;

	if (run->problem->global)
		ptx_module_global(run->module, run->problem->global, &address, &size);
	return memset(address, 0, run->problem->out_words * sizeof(*out));
}

static uint64_t blocks_of(struct ptx_dim grid)
{
	return (uint64_t)grid.x * grid.y * grid.z;
}

static void *run_blocks(void *data)
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

static bool is_good(const struct launch *launch, const char *what)
{
	struct run *run = launch->run;

	if (launch->error)
		snprintf(run->message, sizeof(run->message), "%s: %s, line %d: %.300s", what,
			 strerror(-launch->error), launch->why.line, launch->why.message);
	return !launch->error;
}

static bool compare(struct run *run, const char *what, const uint32_t *out)
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
				run_blocks(&launch);
				if (!is_good(&launch, "sliced"))
					return false;
			}
			slice.first[1] += rows;
		}
	}
	return true;
}

/* What the host asks of a launch. */
struct asked {
	volatile uint64_t any; /* the quota is looked for */
	volatile uint64_t demand;
	volatile uint32_t hold, sms;
};

/* SMs that are to be left: none mostly, or garbage. */
static uint32_t random_sms(struct run *run)
{
	unsigned n = random_below(&run->random, 2 * SMS + 1);

	return n < 2 * SMS ? (n > SMS ? n - SMS : 0) : (uint32_t)random_below(&run->random, ~0u);
}

/* The quota changes while the workers run. */
static void change_quota(struct run *run, struct asked *asked)
{
	for (unsigned k = random_below(&run->random, 4); k; k--) {
		usleep(random_below(&run->random, 100));
		asked->sms = random_sms(run);
		asked->any = random_below(&run->random, 4);
	}
}

/* Runs the workers of a launch on threads, with a demand at the start, later, or never. A stale
 * launch runs beside them. */
static void run_workers(struct launch *launch, struct launch *stale, struct asked *asked)
{
	pthread_t threads[THREADS + 1];
	unsigned moment = random_below(&launch->run->random, 4), n = 0;

	launch->ptx.grid = (struct ptx_dim){launch->run->workers, 1, 1};
	launch->next = 0;
	stale->ptx.grid = launch->ptx.grid;
	stale->next = 0;
	asked->demand = moment == 0;
	if (!pthread_create(&threads[n], NULL, run_blocks, stale))
		n++;
	for (unsigned k = 0; k < THREADS; k++)
		if (!pthread_create(&threads[n], NULL, run_blocks, launch))
			n++;
	change_quota(launch->run, asked);
	if (moment == 1)
		usleep(random_below(&launch->run->random, 300));
	if (moment != 3)
		asked->demand = 1;
	while (n)
		pthread_join(threads[--n], NULL);
}

static bool fail(struct run *run, enum weir_form form, const char *what)
{
	snprintf(run->message, sizeof(run->message), "%s: %s", weir_form_name(form), what);
	return false;
}

/* What the words and the report say of a launch that left some SMs. */
static bool count_quota(struct run *run, enum weir_form form, const struct weir_words *words,
			volatile struct weir_report *report, uint32_t partial, uint32_t returns)
{
	uint64_t now = (uint64_t)words->returns << 32 | words->partial;

	run->partial += words->partial - partial;
	run->returns += words->returns - returns;
	if (words->partial - partial > 1 || words->returns - returns > 1)
		return fail(run, form, "a launch left more than once");
	if (words->returns != returns && words->done == run->serial)
		return fail(run, form, "a launch that is done came back");
	if (report->partial != (words->partial != partial ? now : 0))
		return fail(run, form, "the report does not tell that workers left");
	if (words->quota & (WEIR_QUOTA_GONE | WEIR_QUOTA_RETURNING) || words->asked ||
	    words->ticket & WEIR_TICKET_ASKED || (words->done == run->serial && words->quota))
		return fail(run, form, "the quota is not in order");
	return true;
}

/* Launches continuations until the words say done, then one more, which must do nothing. The number
 * of workers changes between launches unless blocks are saved. */
static bool run_until_done(struct run *run, enum weir_form form, uint32_t *out,
			   struct weir_words *words, struct weir_persistent *hidden,
			   struct asked *asked)
{
	volatile struct weir_report *report = (volatile void *)(uintptr_t)hidden->report;
	uint32_t saved = words->saved, drained = words->drained, partial, returns;
	bool has_saved;
	struct weir_persistent before = *hidden;
	struct launch launch, stale;
	unsigned launches = 0;

	before.serial--;
	before.fresh = 0;
	run->serial = hidden->serial;
	launch_init(&stale, run, form, out, &before, sizeof(before));
	while (words->done != hidden->serial && launches++ < LAUNCHES_MAX) {
		if (form != WEIR_RESUMABLE || launches == 1)
			run->workers = 1 + random_below(&run->random, WORKERS_MAX);
		hidden->poller = run->workers > 1 && random_below(&run->random, 2);
		hidden->dealt = random_below(&run->random, 2) ? run->workers - hidden->poller : 0;
		launch_init(&launch, run, form, out, hidden, sizeof(*hidden));
		*report = (struct weir_report){0};
		partial = words->partial;
		returns = words->returns;
		run_workers(&launch, &stale, asked);
		hidden->fresh = 0;
		if (!is_good(&launch, weir_form_name(form)) || !is_good(&stale, "stale"))
			return false;
		has_saved = form == WEIR_RESUMABLE && run->save_fixed && words->resume;
		run->saves += has_saved;
		if (has_saved != (words->saved != saved))
			return fail(run, form, "saved blocks are not counted");
		saved = words->saved;
		if (report->launch != ((uint64_t)words->evictions << 32 | words->done) ||
		    report->blocks != ((uint64_t)words->drained << 32 | words->saved))
			return fail(run, form, "the report is not what the words say");
		if (words->left || words->ticket > hidden->tickets)
			return fail(run, form, "the words are not in order");
		if (!count_quota(run, form, words, report, partial, returns))
			return false;
	}
	if (words->done != hidden->serial)
		return fail(run, form, "it never gets done");
	run->drains += words->drained - drained;
	if (!hidden->drain && words->drained != drained)
		return fail(run, form, "a block that had to be saved was drained");
	launch_init(&launch, run, form, out, hidden, sizeof(*hidden));
	run_workers(&launch, &stale, asked);
	if (words->done != hidden->serial || words->left || words->ticket || words->resume)
		return fail(run, form, "a continuation too many did something");
	return is_good(&launch, "when done");
}

/* Memory for all workers' saves, filled with garbage. */
static void *new_saves(struct run *run, struct weir_persistent *hidden)
{
	const struct ptx_dim *block = &run->problem->block;
	uint8_t *saves;

	hidden->save_stride =
		(run->save_fixed + (uint64_t)run->save_per_thread * block->x * block->y * block->z +
		 run->problem->dynamic_shared + 255) /
		256 * 256;
	saves = aligned_alloc(256, hidden->save_stride * WORKERS_MAX + 256);
	if (saves)
		memset(saves, 1, hidden->save_stride * WORKERS_MAX);
	hidden->saves = (uintptr_t)saves;
	return saves;
}

static bool run_persistent(struct run *run, enum weir_form form, uint32_t *out)
{
	/* Nanoseconds: blocks are never finished, sometimes, or always if other tickets tell. */
	static const uint32_t drains[] = {0, 50000, 1u << 30}, calls[] = {0, 1, 40};
	struct ptx_dim grid = run->problem->grid;
	struct weir_words *words = aligned_alloc(32, sizeof(*words));
	struct weir_report report;
	struct asked asked = {0};
	struct weir_persistent hidden = {
		.words = (uintptr_t)words,
		.demand = (uintptr_t)&asked.demand,
		.hold = random_below(&run->random, 2) ? (uintptr_t)&asked.hold : 0,
		.grid = {grid.x, grid.y, grid.z},
		.blocks = (uint32_t)blocks_of(grid),
		.report = (uintptr_t)&report,
		.period = random_below(&run->random, 3) * 10000};
	void *saves = new_saves(run, &hidden);
	bool good = words && saves;

	if (good)
		memset(words, 0, sizeof(*words));
	for (hidden.serial = 1; good && hidden.serial <= 2; hidden.serial++) {
		out = results(run, out);
		hidden.ahead = form == WEIR_PERSISTENT && random_below(&run->random, 2);
		hidden.room = random_below(&run->random, 2) ? (uintptr_t)&asked.sms : 0;
		asked.sms = random_sms(run);
		asked.any = random_below(&run->random, 4);
		hidden.quota = weir_quota(random_below(&run->random, 2) ? asked.sms : 0);
		weir_cut(&hidden, 1 + random_below(&run->random, 2 + hidden.blocks / 3),
			 1 + random_below(&run->random, WORKERS_MAX),
			 (int)random_below(&run->random, 2),
			 hidden.room ? WEIR_TICKETS_IN_ROW
				     : (enum weir_ticket_order)random_below(&run->random, 2));
		hidden.fresh = random_below(&run->random, 2);
		hidden.drain = drains[random_below(&run->random, 3)];
		hidden.calls = calls[random_below(&run->random, 3)];
		good = run_until_done(run, form, out, words, &hidden, &asked) &&
		       compare(run, weir_form_name(form), out);
	}
	run->evictions += words ? words->evictions : 0;
	free(words);
	free(saves);
	return good;
}

bool run_asked(struct run *run, uint32_t n_long, uint32_t took, uint32_t drain,
	       struct weir_words *words)
{
	const uint32_t kind = 7;
	_Alignas(32) struct weir_words own = {0};
	uint64_t demand = 1;
	struct ptx_dim grid = run->problem->grid;
	struct weir_persistent hidden = {.words = (uintptr_t)&own,
					 .demand = (uintptr_t)&demand,
					 .grid = {grid.x, grid.y, grid.z},
					 .blocks = (uint32_t)blocks_of(grid),
					 .serial = 1,
					 .fresh = 1,
					 .drain = drain,
					 .kind = kind};
	uint32_t *out = calloc(run->problem->out_words, sizeof(*out));
	uint8_t *saves = new_saves(run, &hidden);
	struct launch launch = {.run = run, .error = -ENOMEM};

	if (out && saves) {
		for (size_t i = 0; took && i < SAVED_TICKETS; i++) {
			/* Of one block; 1 cycle is 1 ns. */
			uint32_t ticket[] = {kind + 1, i < n_long ? took : 1};
			memcpy(saves + SAVED_TICKETS_AT + i * sizeof(ticket), ticket,
			       sizeof(ticket));
		}
		weir_cut(&hidden, 1, 1, true, WEIR_TICKETS_IN_ROW);
		launch_init(&launch, run, WEIR_RESUMABLE, out, &hidden, sizeof(hidden));
		launch.ptx.grid = (struct ptx_dim){1, 1, 1};
		run_blocks(&launch);
	}
	*words = own;
	free(saves);
	free(out);
	return is_good(&launch, "asked");
}

bool run_form(struct run *run, enum weir_form form)
{
	uint32_t *memory = calloc(run->problem->out_words + 1, sizeof(*memory)), *out;
	bool good = false;

	if (memory) {
		out = results(run, memory);
		good = form == WEIR_SLICED ? run_sliced(run, out) && compare(run, "sliced", out)
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
	out = results(run, run->want);
	launch_init(&launch, run, WEIR_NATIVE, out, NULL, 0);
	run_blocks(&launch);
	memmove(run->want, out, problem->out_words * sizeof(*out));
	return is_good(&launch, "native");
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
