/* A text in, the same text out, with the forms of each kernel behind it. */
#include "weir/transform.h"

#include "syntax/emit.h"
#include "syntax/parse.h"
#include "pipeline/pipeline.h"
#include "syntax/verify.h"

#include <string.h>

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

/* From the IR instead of the text, for those who test the printer. */
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
