/* The pipeline: text, module, and for each kernel and form a copy that goes through the form's
 * passes and is printed behind the original.
 */
#include "weir/transform.h"

#include "emit.h"
#include "parse.h"
#include "pass.h"
#include "verify.h"

#include <errno.h>
#include <string.h>

/* What a text of one byte may take; what real ones take is a tenth. */
#define BYTES_A_BYTE 256u
#define SPARE_BYTES  (16u << 20)

struct transform {
	const struct weir_transform_options *options;
	struct arena arena, body_arena; /* of the module; of the function at hand */
	struct diag diag;
	struct module module;
	struct text out;
};

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

static void dump(const struct transform *t, const struct function *f, const char *pass)
{
	struct text text;

	if (!t->options->dump || !t->options->dump_after ||
	    strcmp(t->options->dump_after, pass) != 0)
		return;
	text_init(&text, t->out.max);
	emit_function(&text, f);
	text_string(&text, "\n");
	if (!text.error)
		t->options->dump(t->options->data, pass, text.data, text.len);
	text_deinit(&text);
}

/* The end of a pass's work: its own word, unless an edit has failed or left something broken. */
static int check_pass(struct transform *t, struct rewrite *rewrite, const struct pass *pass, int r)
{
	struct diag *diag = t->module.diag;

	if (r == -E2BIG)
		return pass_refuse(rewrite, rewrite->function->at,
				   "%s: control flow too tangled for its size", pass->name);
	if (r)
		return r;
	if (!diag->error)
		verify_function(rewrite->function, diag);
	if (diag->error)
		return pass_refuse(rewrite, diag->at, "%s: %s", pass->name, diag->message);
	dump(t, rewrite->function, pass->name);
	return PASS_DONE;
}

static int run_passes(struct transform *t, struct rewrite *rewrite)
{
	int r;

	if (!rewrite->form->passes)
		return pass_refuse(rewrite, (struct position){0}, "no passes for this form yet");
	for (const struct pass *const *pass = rewrite->form->passes; *pass; pass++) {
		r = check_pass(t, rewrite, *pass, (*pass)->run(rewrite));
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

/* A kernel that is the result of an earlier run. */
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

/* A copy of the kernel, read, under the form's name; NULL: refused, or the diag says it. */
static struct function *copy_kernel(struct transform *t, struct function *f,
				    struct rewrite *rewrite, struct diag *diag)
{
	size_t len = strlen(f->name);
	char *name = arena_alloc(&t->arena, len + strlen(rewrite->form->suffix) + 1);
	struct function *copy;

	if (!name) {
		diag_no_memory(&t->diag);
		return NULL;
	}
	memcpy(mempcpy(name, f->name, len), rewrite->form->suffix, strlen(rewrite->form->suffix));
	if (is_rewritten(f) || is_taken(&t->module, name)) {
		pass_refuse(rewrite, f->at, "the module has been rewritten before");
		return NULL;
	}
	copy = parse_copy(f, name);
	if (!copy || parse_body(copy, &t->body_arena, diag)) {
		pass_refuse(rewrite, diag->at, "%s", diag->message);
		return NULL;
	}
	return copy;
}

static void tell(const struct transform *t, const struct function *f, const struct rewrite *rewrite)
{
	struct weir_verdict verdict = {.kernel = f->name,
				       .form = rewrite->form->id,
				       .eligible = !rewrite->refusal.error,
				       .line = rewrite->refusal.at.line,
				       .reason = rewrite->refusal.message};

	if (t->options->verdict)
		t->options->verdict(t->options->data, &verdict);
}

static int rewrite_kernel(struct transform *t, struct function *f, const struct form *form)
{
	struct rewrite rewrite = {.form = form};
	struct diag diag = {0};
	int r = PASS_REFUSED;

	arena_reset(&t->body_arena);
	rewrite.function = copy_kernel(t, f, &rewrite, &diag);
	if (rewrite.function)
		r = run_passes(t, &rewrite);
	t->module.diag = &t->diag;
	if (r < 0)
		return diag_fail(&t->diag, r, f->at, "%s", strerror(-r));
	if (r == PASS_DONE) {
		text_string(&t->out, "\n\n");
		emit_function(&t->out, rewrite.function);
	}
	tell(t, f, &rewrite);
	return t->diag.error;
}

/* From the IR instead of the text, for those who test the printer. */
static void reprint(struct transform *t, struct function *f)
{
	arena_reset(&t->body_arena);
	if (!parse_body(f, &t->body_arena, &t->diag) && !verify_function(f, &t->diag))
		emit_function(&t->out, f);
}

static void transform_function(struct transform *t, struct function *f)
{
	const char *only = t->options->kernel;

	if (t->options->reprint && f->has_body)
		reprint(t, f);
	else
		text_add(&t->out, f->whole.start, f->whole.len);
	if (!f->is_kernel || !f->has_body || (only && strcmp(only, f->name) != 0))
		return;
	for (size_t k = 0; k < form_count && !t->diag.error; k++)
		if (t->options->forms & 1u << forms[k].id)
			rewrite_kernel(t, f, &forms[k]);
}

static void transform_module(struct transform *t)
{
	const char *at = t->module.text;

	for (struct function *f = t->module.functions; f && !t->diag.error; f = f->next) {
		text_add(&t->out, at, (size_t)(f->whole.start - at));
		transform_function(t, f);
		at = f->whole.start + f->whole.len;
	}
	text_add(&t->out, at, (size_t)(t->module.text + t->module.len - at));
	if (t->out.error)
		diag_fail(&t->diag, t->out.error, (struct position){0}, "the output: %s",
			  strerror(-t->out.error));
}

static int report(const struct diag *diag, struct weir_error *error)
{
	if (diag->error && error) {
		error->line = diag->at.line;
		error->column = diag->at.column;
		strncpy(error->message, diag->message, sizeof(error->message) - 1);
		error->message[sizeof(error->message) - 1] = '\0';
	}
	return diag->error;
}

int weir_transform(char **out, size_t *out_len, const char *ptx, size_t len,
		   const struct weir_transform_options *options, struct weir_error *error)
{
	size_t max =
		len < SIZE_MAX / BYTES_A_BYTE / 2 ? len * BYTES_A_BYTE + SPARE_BYTES : SIZE_MAX;
	struct transform t = {.options = options};

	arena_init(&t.arena, max);
	arena_init(&t.body_arena, max);
	text_init(&t.out, options->output_max ? options->output_max : max);
	if (!parse_module(&t.module, &t.arena, &t.diag, len ? ptx : "", len))
		transform_module(&t);
	if (!t.diag.error) {
		*out_len = t.out.len;
		*out = text_take(&t.out);
		if (!*out)
			diag_no_memory(&t.diag);
	}
	text_deinit(&t.out);
	arena_deinit(&t.body_arena);
	arena_deinit(&t.arena);
	return report(&t.diag, error);
}
