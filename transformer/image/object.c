/* Builds an object: one kernel in a module of its own, rewritten, compiled and packed into a file.
 */
#include "weir/object.h"

#include "passes/detach.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 8u
/* The most that ptxas gives to a thread: no limit. */
#define REGISTERS_OF_THREAD 255u

#define BUILDS_MAX (WEIR_FORM_COUNT + 3)

struct building {
	const struct weir_object_request *request;
	struct pipeline pipeline; /* its output is the new module */
	struct detached detached;
	struct weir_object_form forms[BUILDS_MAX];
	const struct build *build; /* the current build */
	uint32_t n_forms;
	bool has_entry, is_straight;
	struct text names; /* offsets count from its start plus 1 until place_names() */
	struct text out;   /* the object */
	void *code;        /* from the assembler, or NULL */
	size_t code_size;
};

static uint32_t add_name(struct building *b, const char *name)
{
	uint32_t at = (uint32_t)b->names.len + 1;

	text_string(&b->names, name);
	text_add(&b->names, "", 1);
	return at;
}

static uint32_t add_entry(struct building *b, const char *name, const struct build *build)
{
	uint32_t at = (uint32_t)b->names.len + 1;

	text_strings(&b->names, name, build->suffix);
	add_name(b, build->form->suffix);
	return at;
}

static void note_verdict(void *data, const struct weir_verdict *v)
{
	struct building *b = data;
	struct weir_object_form *form = &b->forms[b->n_forms++];

	form->form = v->form;
	form->line = v->line;
	if (v->eligible) {
		form->entry = add_entry(b, v->kernel, b->build);
		form->registers = b->build->registers_max;
		form->save_fixed = v->save_fixed;
		form->save_per_thread = v->save_per_thread;
		b->has_entry = true;
		b->is_straight = v->is_straight;
	} else {
		form->reason = add_name(b, *v->reason ? v->reason : "refused");
	}
}

static _Noreturn void fail(struct building *b, int error, const char *what, const char *name)
{
	diag_stop(&b->pipeline.diag, error, (struct position){0}, "%s%s%.120s", what,
		  *name ? " " : "", name);
}

static struct function *find_kernel(struct building *b)
{
	struct function *f = b->pipeline.module.functions;

	while (f && !(f->is_kernel && f->has_body && !strcmp(f->name, b->request->kernel)))
		f = f->next;
	if (!f)
		fail(b, -ENOENT, "no kernel", b->request->kernel);
	return f;
}

/* False: the form was refused. */
static bool add_build(struct building *b, struct function *kernel, const struct build *build)
{
	b->build = build;
	pipeline_rewrite(&b->pipeline, kernel, build);
	return b->forms[b->n_forms - 1].entry;
}

/* The first build has no register limit, for which the assembler makes the best code (FORMS.md).
 * Persistent has two more builds with limits, if the kernel's register count is known. Resumable
 * has the narrow one: a grid that natively fits on the GPU as a whole must also fit in this form.
 * For the same reason it is the only build of the soonest form. */
static void add_form(struct building *b, struct function *kernel, const struct form *form)
{
	unsigned native = b->request->registers;
	bool has_narrow = native && weir_registers_max(native) < REGISTERS_OF_THREAD &&
			  (form->id == WEIR_PERSISTENT || form->id == WEIR_RESUMABLE);
	bool has_wide = native && form->id == WEIR_PERSISTENT;
	const struct build builds[] = {
		{form, "", 0},
		{form, "_narrow", has_narrow ? weir_registers_max(native) : 0},
		{form, "_wide", has_wide ? weir_registers_wide(native) : 0},
	};

	if (b->request->soonest) {
		add_build(b, kernel, &builds[has_narrow]);
		return;
	}
	for (size_t k = 0; k < sizeof(builds) / sizeof(builds[0]); k++)
		if ((!k || builds[k].registers_max) && !add_build(b, kernel, &builds[k]))
			return;
}

/* @forms, or the one of them that leaves soonest: these are in the order in which they leave. */
static unsigned wanted_forms(const struct weir_object_request *request)
{
	unsigned wanted = request->forms, last = 0;

	for (size_t k = 0; request->soonest && k < form_count; k++)
		if (request->forms & 1u << forms[k].id)
			last = 1u << forms[k].id;
	return request->soonest ? last : wanted;
}

/* Prints the new module and fills in the verdicts. */
static void rewrite(struct building *b, struct function *kernel)
{
	struct pipeline *p = &b->pipeline;
	uint32_t threads = function_threads(kernel);
	unsigned wanted = wanted_forms(b->request);

	p->detached = &b->detached;
	detach_init(&b->detached, kernel);
	detach_print(&p->out, &b->detached);
	for (size_t k = 0; k < form_count; k++)
		if (wanted & 1u << forms[k].id)
			add_form(b, kernel, &forms[k]);
	for (uint32_t k = 0; k < b->n_forms; k++)
		b->forms[k].max_threads = threads;
	text_string(&p->out, "\n");
	pipeline_finish(p);
}

static void assemble(struct building *b)
{
	const struct weir_object_request *request = b->request;
	const struct text *ptx = &b->pipeline.out;
	struct weir_error error = {0};
	int r = request->assemble(request->data, ptx->data, ptx->len, request->sm, &b->code,
				  &b->code_size, &error);

	if (r)
		diag_stop(&b->pipeline.diag, r, (struct position){error.line, error.column}, "%.*s",
			  DIAG_MAX - 1, error.message);
	if (!b->code || !b->code_size)
		fail(b, -EINVAL, "the assembler returned no image", "");
}

/* The driver's parameter layout. */
static uint32_t add_params(struct building *b, const struct function *kernel)
{
	uint32_t n = 0;
	uint64_t end = 0;

	for (const struct variable *v = kernel->params; v; v = v->next, n++) {
		uint64_t align = variable_align(v), offset = (end + align - 1) / align * align;
		struct weir_object_param param = {(uint32_t)offset, (uint32_t)v->size};

		if (!v->size || offset > WEIR_OBJECT_PARAMS_MAX ||
		    v->size > WEIR_OBJECT_PARAMS_MAX - offset)
			fail(b, -EINVAL, "a parameter of unknown size:", v->name);
		text_add(&b->out, (const char *)&param, sizeof(param));
		end = offset + v->size;
	}
	return n;
}

static void add_symbols(struct building *b, const struct symbol_list *list,
			enum weir_object_space space)
{
	for (const struct symbol *s = list->first; s; s = s->next) {
		struct weir_object_symbol symbol = {.size = s->variable->size,
						    .name = add_name(b, s->variable->name),
						    .copy = s->copy ? add_name(b, s->copy->name)
								    : 0,
						    .space = space};

		text_add(&b->out, (const char *)&symbol, sizeof(symbol));
	}
}

/* Makes offsets of names in the tables count from the file's start. */
static void place_names(struct text *out, const struct weir_object *head, uint32_t names)
{
	struct weir_object_form *form = (void *)(out->data + head->forms);
	struct weir_object_symbol *symbol = (void *)(out->data + head->symbols);

	for (uint32_t k = 0; k < head->n_forms; k++) {
		form[k].entry += form[k].entry ? names - 1 : 0;
		form[k].reason += form[k].reason ? names - 1 : 0;
	}
	for (uint32_t k = 0; k < head->n_symbols; k++) {
		symbol[k].name += names - 1;
		symbol[k].copy += symbol[k].copy ? names - 1 : 0;
	}
}

static uint32_t align_out(struct text *out)
{
	static const char zeros[ALIGN];

	text_add(out, zeros, -out->len % ALIGN);
	return (uint32_t)out->len;
}

/* Writes header, tables, names and image. */
static void pack(struct building *b, const struct function *kernel)
{
	const struct detached *d = &b->detached;
	const struct text *ptx = &b->pipeline.out;
	struct text *out = &b->out;
	bool is_ptx = b->has_entry && !b->code;
	size_t image_size = is_ptx ? ptx->len + 1 : b->code_size;
	struct weir_object head = {.magic = WEIR_OBJECT_MAGIC,
				   .version = WEIR_OBJECT_VERSION,
				   .flags = is_ptx ? WEIR_OBJECT_IS_PTX : 0,
				   .abi = WEIR_PREEMPT_ABI,
				   .sm = b->request->sm,
				   .n_forms = b->n_forms,
				   .image_size = (uint32_t)image_size,
				   .traits = b->is_straight ? WEIR_OBJECT_IS_STRAIGHT : 0};
	uint32_t names;
	int error;

	text_add(out, (const char *)&head, sizeof(head));
	head.forms = (uint32_t)out->len;
	text_add(out, (const char *)b->forms, b->n_forms * sizeof(*b->forms));
	head.params = (uint32_t)out->len;
	head.n_params = add_params(b, kernel);
	head.symbols = (uint32_t)out->len;
	if (b->has_entry) {
		head.n_symbols = d->addresses.count + d->copies.count;
		add_symbols(b, &d->addresses, WEIR_OBJECT_GLOBAL);
		add_symbols(b, &d->copies, WEIR_OBJECT_CONSTANT);
	}
	names = (uint32_t)out->len;
	head.kernel = names - 1 + add_name(b, kernel->name);
	text_add(out, b->names.data ? b->names.data : "", b->names.len);
	head.image = align_out(out);
	if (b->has_entry)
		text_add(out, is_ptx ? ptx->data : b->code, image_size);
	head.size = (uint32_t)out->len;
	error = out->error ? out->error : b->names.error;
	if (error)
		fail(b, error, "the object:", strerror(-error));
	place_names(out, &head, names);
	memcpy(out->data, &head, sizeof(head));
}

static void build(void *data)
{
	struct building *b = data;
	struct function *kernel = find_kernel(b);

	rewrite(b, kernel);
	if (b->has_entry && b->request->assemble)
		assemble(b);
	pack(b, kernel);
}

int weir_object_build(void **out, size_t *out_len, const struct weir_object_request *request,
		      struct weir_error *error)
{
	struct building b = {.request = request};
	const struct weir_transform_options options = {.verdict = note_verdict, .data = &b};
	struct pipeline *p = &b.pipeline;
	size_t len;
	char *ptx;
	int r = weir_image_ptx(&ptx, &len, request->image, request->len, request->sm, error);

	if (r)
		return r;
	text_init(&b.out, WEIR_OBJECT_MAX);
	text_init(&b.names, WEIR_OBJECT_MAX);
	if (!pipeline_open(p, ptx, len, &options) && !diag_try(&p->diag, build, &b)) {
		*out_len = b.out.len;
		*out = text_take(&b.out);
	}
	text_deinit(&b.out);
	text_deinit(&b.names);
	detach_deinit(&b.detached);
	pipeline_close(p);
	free(b.code);
	free(ptx);
	return pipeline_report(&p->diag, error);
}
