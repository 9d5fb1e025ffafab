#include "pipeline/pipeline.h"

#include "syntax/emit.h"
#include "syntax/parse.h"
#include "syntax/verify.h"

#include <errno.h>
#include <string.h>

/* Limit of memory per byte of text; real texts need a tenth. */
#define BYTES_A_BYTE 256u
#define SPARE_BYTES  (16u << 20)

int pipeline_open(struct pipeline *p, const char *ptx, size_t len,
		  const struct weir_transform_options *options)
{
	size_t max =
		len < SIZE_MAX / BYTES_A_BYTE / 2 ? len * BYTES_A_BYTE + SPARE_BYTES : SIZE_MAX;

	*p = (struct pipeline){.options = options};
	arena_init(&p->arena, max);
	arena_init(&p->body_arena, max);
	text_init(&p->out, options->output_max ? options->output_max : max);
	return parse_module(&p->module, &p->arena, &p->diag, len ? ptx : "", len);
}

void pipeline_close(struct pipeline *p)
{
	text_deinit(&p->out);
	arena_deinit(&p->body_arena);
	arena_deinit(&p->arena);
}

char *pipeline_take(struct pipeline *p, size_t *len)
{
	char *out;

	if (p->out.error)
		diag_fail(&p->diag, p->out.error, (struct position){0}, "the output: %s",
			  strerror(-p->out.error));
	if (p->diag.error)
		return NULL;
	*len = p->out.len;
	out = text_take(&p->out);
	if (!out)
		diag_no_memory(&p->diag);
	return out;
}

int pipeline_report(const struct diag *diag, struct weir_error *error)
{
	if (diag->error && error) {
		*error = (struct weir_error){.line = diag->at.line, .column = diag->at.column};
		memcpy(error->message, diag->message, sizeof(diag->message));
	}
	return diag->error;
}

static void dump(const struct pipeline *p, const struct function *f, const char *pass)
{
	struct text text;

	if (!p->options->dump || !p->options->dump_after ||
	    strcmp(p->options->dump_after, pass) != 0)
		return;
	text_init(&text, p->out.max);
	emit_function(&text, f);
	text_string(&text, "\n");
	if (!text.error)
		p->options->dump(p->options->data, pass, text.data, text.len);
	text_deinit(&text);
}

/* Verifies the IR behind a pass. A failed edit or broken IR refuses the kernel. */
static int check_pass(struct pipeline *p, struct rewrite *rewrite, const struct pass *pass, int r)
{
	struct diag *diag = p->module.diag;

	if (r == -E2BIG)
		return pass_refuse(rewrite, rewrite->function->at,
				   "%s: control flow too complex for its size", pass->name);
	if (r)
		return r;
	if (!diag->error)
		verify_function(rewrite->function, diag);
	if (diag->error)
		return pass_refuse(rewrite, diag->at, "%s: %s", pass->name, diag->message);
	dump(p, rewrite->function, pass->name);
	return PASS_DONE;
}

static int run_passes(struct pipeline *p, struct rewrite *rewrite)
{
	int r;

	for (const struct pass *const *pass = rewrite->form->passes; *pass; pass++) {
		r = check_pass(p, rewrite, *pass, (*pass)->run(rewrite));
		if (r)
			return r;
	}
	return PASS_DONE;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* Whether an earlier run produced this kernel. */
static bool is_rewritten(const struct function *f)
{
	for (size_t k = 0; k < form_count; k++)
		if (ends_with(f->name, forms[k].suffix))
			return true;
	return false;
}

static bool is_taken(const struct module *module, const char *name)
{
	return intern_find(&module->names, name, strlen(name));
}

/* Parses a copy of the kernel under the form's name. NULL: refused, or an error in the diag. */
static struct function *copy_kernel(struct pipeline *p, struct function *f, struct rewrite *rewrite,
				    const struct build *build, struct diag *diag)
{
	size_t len = strlen(f->name), middle = strlen(build->suffix);
	size_t end = strlen(build->form->suffix) + 1;
	char *name = arena_alloc(&p->arena, len + middle + end);
	struct function *copy;

	if (!name) {
		diag_no_memory(&p->diag);
		return NULL;
	}
	memcpy(mempcpy(mempcpy(name, f->name, len), build->suffix, middle), build->form->suffix,
	       end);
	if (is_rewritten(f) || is_taken(&p->module, name)) {
		pass_refuse(rewrite, f->at, "the module has already been rewritten");
		return NULL;
	}
	copy = parse_copy(f, name);
	if (!copy || parse_body(copy, &p->body_arena, diag)) {
		pass_refuse(rewrite, diag->at, "%s", diag->message);
		return NULL;
	}
	return copy;
}

static void tell(const struct pipeline *p, const struct function *f, const struct rewrite *rewrite)
{
	struct weir_verdict verdict = {.kernel = f->name,
				       .form = rewrite->form->id,
				       .eligible = !rewrite->refusal.error,
				       .line = rewrite->refusal.at.line,
				       .reason = rewrite->refusal.message,
				       .save_fixed = rewrite->save_fixed,
				       .save_per_thread = rewrite->save_per_thread};

	if (p->options->verdict)
		p->options->verdict(p->options->data, &verdict);
}

int pipeline_rewrite(struct pipeline *p, struct function *f, const struct build *build)
{
	struct rewrite rewrite = {.form = build->form,
				  .detached = p->detached,
				  .registers_max = build->registers_max};
	struct diag diag = {0};
	int r = PASS_REFUSED;

	arena_reset(&p->body_arena);
	rewrite.function = copy_kernel(p, f, &rewrite, build, &diag);
	if (rewrite.function)
		r = run_passes(p, &rewrite);
	p->module.diag = &p->diag;
	if (r < 0)
		return diag_fail(&p->diag, r, f->at, "%s", strerror(-r));
	if (r == PASS_DONE) {
		text_string(&p->out, "\n\n");
		emit_function(&p->out, rewrite.function);
	}
	tell(p, f, &rewrite);
	return p->diag.error;
}

const char *weir_form_name(enum weir_form form)
{
	for (size_t k = 0; k < form_count; k++)
		if (forms[k].id == form)
			return forms[k].name;
	return "native";
}

const char *weir_form_suffix(enum weir_form form)
{
	for (size_t k = 0; k < form_count; k++)
		if (forms[k].id == form)
			return forms[k].suffix;
	return "";
}

/* Prints a function from its IR, to test the printer. */
static void reprint(struct pipeline *p, struct function *f)
{
	arena_reset(&p->body_arena);
	if (!parse_body(f, &p->body_arena, &p->diag) && !verify_function(f, &p->diag))
		emit_function(&p->out, f);
}

static void transform_function(struct pipeline *p, struct function *f)
{
	const char *only = p->options->kernel;

	if (p->options->reprint && f->has_body)
		reprint(p, f);
	else
		text_add(&p->out, f->whole.start, f->whole.len);
	if (!f->is_kernel || !f->has_body || (only && strcmp(only, f->name) != 0))
		return;
	for (size_t k = 0; k < form_count && !p->diag.error; k++) {
		struct build build = {&forms[k], "", p->options->registers_max};

		if (p->options->forms & 1u << forms[k].id)
			pipeline_rewrite(p, f, &build);
	}
}

static void transform_module(struct pipeline *p)
{
	const char *at = p->module.text;

	for (struct function *f = p->module.functions; f && !p->diag.error; f = f->next) {
		text_add(&p->out, at, (size_t)(f->whole.start - at));
		transform_function(p, f);
		at = f->whole.start + f->whole.len;
	}
	text_add(&p->out, at, (size_t)(p->module.text + p->module.len - at));
}

int weir_transform(char **out, size_t *out_len, const char *ptx, size_t len,
		   const struct weir_transform_options *options, struct weir_error *error)
{
	struct pipeline p;
	char *text = NULL;

	if (!pipeline_open(&p, ptx, len, options)) {
		transform_module(&p);
		text = pipeline_take(&p, out_len);
	}
	if (text)
		*out = text;
	pipeline_close(&p);
	return pipeline_report(&p.diag, error);
}
