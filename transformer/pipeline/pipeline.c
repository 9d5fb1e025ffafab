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
	arena_init(&p->arena, max, &p->diag);
	arena_init(&p->body_arena, max, &p->diag);
	arena_init(&p->scratch, SIZE_MAX, &p->diag);
	text_init(&p->out, options->output_max ? options->output_max : max);
	return parse_module(&p->module, &p->arena, len ? ptx : "", len);
}

void pipeline_close(struct pipeline *p)
{
	text_deinit(&p->out);
	arena_deinit(&p->scratch);
	arena_deinit(&p->body_arena);
	arena_deinit(&p->arena);
}

void pipeline_finish(struct pipeline *p)
{
	if (p->out.error)
		diag_stop(&p->diag, p->out.error, (struct position){0}, "the output: %s",
			  strerror(-p->out.error));
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

struct rewriting {
	struct pipeline *p;
	struct function *f;
	const struct build *build;
	struct rewrite rewrite;
	const struct pass *pass; /* the current one */
};

/* Parses a copy of the kernel under the form's name and runs the form's passes over it. */
static void rewrite_kernel(void *data)
{
	struct rewriting *r = data;
	struct pipeline *p = r->p;
	struct function *f = r->f;
	const char *middle = r->build->suffix, *suffix = r->build->form->suffix;
	size_t len = strlen(f->name);
	char *name = arena_alloc(&p->arena, len + strlen(middle) + strlen(suffix) + 1);

	stpcpy(stpcpy(mempcpy(name, f->name, len), middle), suffix);
	if (is_rewritten(f) || intern_find(&p->module.names, name, strlen(name)))
		diag_stop(&p->diag, -ENOTSUP, f->at, "the module has already been rewritten");
	r->rewrite.function = parse_copy(f, name);
	parse_body(r->rewrite.function, &p->body_arena);
	for (const struct pass *const *pass = r->build->form->passes; *pass; pass++) {
		r->pass = *pass;
		r->pass->run(&r->rewrite);
		verify_function(r->rewrite.function, &p->scratch);
		dump(p, r->rewrite.function, r->pass->name);
	}
}

static void tell(const struct rewriting *r, const struct diag *refusal)
{
	const struct pipeline *p = r->p;
	struct weir_verdict verdict = {.kernel = r->f->name,
				       .form = r->build->form->id,
				       .eligible = !refusal->error,
				       .line = refusal->at.line,
				       .reason = refusal->message,
				       .save_fixed = r->rewrite.save_fixed,
				       .save_per_thread = r->rewrite.save_per_thread,
				       .save_spared = r->rewrite.save_spared,
				       .is_straight = !refusal->error && r->rewrite.is_straight};

	if (p->options->verdict)
		p->options->verdict(p->options->data, &verdict);
}

void pipeline_rewrite(struct pipeline *p, struct function *f, const struct build *build)
{
	struct rewriting r = {.p = p,
			      .f = f,
			      .build = build,
			      .rewrite = {.form = build->form,
					  .detached = p->detached,
					  .registers_max = build->registers_max}};
	struct diag error, refusal = {0};

	arena_reset(&p->body_arena);
	if (diag_try(&p->diag, rewrite_kernel, &r) == -ENOMEM)
		diag_stop_again(&p->diag);
	error = diag_take(&p->diag);
	if (!error.error) {
		text_string(&p->out, "\n\n");
		emit_function(&p->out, r.rewrite.function);
	} else if (r.pass && error.error != -ENOTSUP) {
		diag_fail(&refusal, -ENOTSUP, error.at, "%s: %s", r.pass->name, error.message);
	} else {
		refusal = error;
	}
	tell(&r, &refusal);
}

static const struct form *form_of(enum weir_form id)
{
	static const struct form native = {WEIR_NATIVE, "native", "", NULL};

	for (size_t k = 0; k < form_count; k++)
		if (forms[k].id == id)
			return &forms[k];
	return &native;
}

const char *weir_form_name(enum weir_form form)
{
	return form_of(form)->name;
}

const char *weir_form_suffix(enum weir_form form)
{
	return form_of(form)->suffix;
}

/* Prints a function from its IR, to test the printer. */
static void reprint(struct pipeline *p, struct function *f)
{
	arena_reset(&p->body_arena);
	parse_body(f, &p->body_arena);
	verify_function(f, &p->scratch);
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
	for (size_t k = 0; k < form_count; k++) {
		struct build build = {&forms[k], "", p->options->registers_max};

		if (p->options->forms & 1u << forms[k].id)
			pipeline_rewrite(p, f, &build);
	}
}

static void transform_module(void *data)
{
	struct pipeline *p = data;
	const char *at = p->module.text;

	for (struct function *f = p->module.functions; f; f = f->next) {
		text_add(&p->out, at, (size_t)(f->whole.start - at));
		transform_function(p, f);
		at = f->whole.start + f->whole.len;
	}
	text_add(&p->out, at, (size_t)(p->module.text + p->module.len - at));
	pipeline_finish(p);
}

int weir_transform(char **out, size_t *out_len, const char *ptx, size_t len,
		   const struct weir_transform_options *options, struct weir_error *error)
{
	struct pipeline p;

	if (!pipeline_open(&p, ptx, len, options) && !diag_try(&p.diag, transform_module, &p)) {
		*out_len = p.out.len;
		*out = text_take(&p.out);
	}
	pipeline_close(&p);
	return pipeline_report(&p.diag, error);
}
