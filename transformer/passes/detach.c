#include "passes/detach.h"

#include "passes/callee.h"
#include "syntax/edit.h"
#include "syntax/emit.h"
#include "syntax/lex.h"
#include "syntax/parse.h"
#include "syntax/scope.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An instruction and its function. */
struct place {
	struct detached *d;
	const struct function *f;
	const struct instruction *i;
};

static _Noreturn void refuse(const struct place *at, const char *what, const char *name)
{
	diag_stop(at->d->module->diag, -ENOTSUP, at->i ? at->i->at : at->f->at,
		  "cannot leave its module: %s%s%.80s", what, *name ? " " : "", name);
}

/* Instructions that only read the variables they name. All others count as stores. */
static bool is_reading(const struct token *word)
{
	return token_is(word, "ld") || token_is(word, "ldu") || token_is(word, "mov") ||
	       token_is(word, "cvta");
}

static void note_store(const struct module *module, const struct token *word)
{
	const char *name = intern_find(&module->names, word->start, word->len);
	const struct binding *b = name ? scope_find(name) : NULL;

	if (b && b->kind == BINDING_VARIABLE)
		b->variable->is_stored = true;
}

/* Marks the module's variables that an instruction of @f may write. */
static void note_stores_of(const struct module *module, const struct function *f)
{
	bool at_start = true, reads = false, in_vector = false;
	struct lexer lexer;
	struct token token;

	lex_init(&lexer, f->body.start, f->body.len, f->body_at);
	do {
		token = lex_next(&lexer);
		switch (token.kind) {
		case '{': /* a scope, or operands */
			in_vector = !at_start;
			break;
		case '}':
			at_start = !in_vector;
			in_vector = false;
			break;
		case ';':
		case ':':
			at_start = true;
			break;
		case '@': /* the guard */
			token = lex_next(&lexer);
			if (token.kind == '!')
				lex_next(&lexer);
			break;
		case TOKEN_WORD:
			if (at_start)
				reads = is_reading(&token);
			else if (!reads)
				note_store(module, &token);
			at_start = false;
			break;
		}
	} while (token.kind != TOKEN_END && token.kind != TOKEN_BAD);
}

static bool is_stored(struct detached *d, const struct variable *v)
{
	for (const struct function *f = d->module->functions; f && !d->know_stores; f = f->next)
		if (f->has_body)
			note_stores_of(d->module, f);
	d->know_stores = true;
	return v->is_stored;
}

/* Whether the initialiser names another variable. */
static bool names_others(const struct variable *v)
{
	struct lexer lexer;
	struct token token;

	lex_init(&lexer, v->after, strlen(v->after), v->at);
	do {
		token = lex_next(&lexer);
		if (token.kind == TOKEN_WORD)
			return true;
	} while (token.kind != TOKEN_END && token.kind != TOKEN_BAD);
	return false;
}

/* Compiler's tables (for sin() etc.) and string literals: a copy is as good as the original. */
static bool is_table(struct detached *d, const struct variable *v)
{
	static const char *const stems[] = {"__cudart_", "$str", "_$_str", "__unnamed_"};
	bool is_compilers = false;

	for (size_t k = 0; k < sizeof(stems) / sizeof(stems[0]); k++)
		is_compilers = is_compilers || !strncmp(v->name, stems[k], strlen(stems[k]));
	return is_compilers && v->is_initialized && !*v->linkage && !names_others(v) &&
	       !is_stored(d, v);
}

/* The copy's name uses the module's prefix, so it is unique. */
static struct variable *copy_of(struct detached *d, const struct variable *v)
{
	struct variable *copy = arena_new(&d->arena, struct variable);
	size_t room = strlen(d->module->prefix) + 24;
	char *name = arena_alloc(&d->arena, room);

	snprintf(name, room, "%scopy_%u", d->module->prefix, d->copies.count);
	*copy = *v;
	copy->name = intern_string(&d->module->names, name);
	return copy;
}

static void add_symbol(struct detached *d, struct variable *v, enum symbol_kind kind)
{
	struct symbol_list *lists[] = {&d->addresses, &d->copies, &d->kept}, *list = lists[kind];
	struct symbol *symbol = arena_new(&d->arena, struct symbol);

	*symbol = (struct symbol){.kind = kind,
				  .index = list->count,
				  .variable = v,
				  .copy = kind == SYMBOL_COPY ? copy_of(d, v) : NULL};
	list->count++;
	*list->end = symbol;
	list->end = &symbol->next;
	v->symbol = symbol;
}

/* Called when a variable of the module is named for the first time. */
static void take_variable(const struct place *at, struct variable *v)
{
	bool is_const = v->space == SPACE_CONST;
	enum symbol_kind kind = is_const ? SYMBOL_COPY : SYMBOL_ADDRESS;

	if (types[v->type].register_class == CLASS_OPAQUE || v->space == SPACE_TEX)
		refuse(at, "it uses a texture, sampler or surface,", v->name);
	if (v->space == SPACE_SHARED || v->space == SPACE_LOCAL || is_table(at->d, v))
		kind = SYMBOL_KEPT;
	else if (v->space != SPACE_GLOBAL && !is_const)
		refuse(at, "it uses something of unknown kind,", v->name);
	else if (is_const && (!strcmp(v->linkage, ".extern") || !v->size))
		refuse(at, "it uses a constant of another module,", v->name);
	add_symbol(at->d, v, kind);
}

static void look_at_variable(const struct place *at, const struct operand *o, bool is_address)
{
	struct variable *v = o->variable;
	uint64_t offset;

	if (!v->of_module && (v->space == SPACE_GLOBAL || v->space == SPACE_CONST))
		refuse(at, "it has a global variable of its own,", v->name);
	if (!v->of_module)
		return;
	if (!v->symbol)
		take_variable(at, v);
	if (v->symbol->kind == SYMBOL_KEPT)
		return;
	if (!at->f->is_kernel)
		refuse(at, "a function that it calls uses", v->name);
	if (v->symbol->kind == SYMBOL_COPY || is_address)
		return;
	if (types[at->i->mnemonic->first_type].bits != 64)
		refuse(at, "it takes a part of the address of", v->name);
	if (o->suffix && !symbol_offset(o, &offset))
		refuse(at, "an offset is not understood, from", v->name);
}

static void take_function(struct detached *d, struct function *f)
{
	if (f->detached)
		return;
	f->detached = parse_copy(f, f->name);
	*d->functions_end = f->detached;
	d->functions_end = &f->detached->next;
}

static void look_at_operand(const struct place *at, const struct operand *o, bool is_address)
{
	const struct binding *b = o->kind == OPERAND_SYMBOL ? scope_find(o->text) : NULL;

	if (o->kind == OPERAND_VARIABLE)
		look_at_variable(at, o, is_address);
	if (b && b->kind == BINDING_FUNCTION)
		refuse(at, "it takes the address of", b->name);
	for (size_t k = 0; k < operand_items(o); k++)
		look_at_operand(at, &o->items[k], is_address || o->kind == OPERAND_ADDRESS);
}

static bool is_callee(const struct instruction *i, const struct operand *o)
{
	return i->mnemonic->op_class == OP_CALL && o->kind == OPERAND_SYMBOL;
}

static void look_at_instruction(const struct place *at)
{
	const struct instruction *i = at->i;

	if (i->mnemonic->op_class == OP_CALL) {
		struct function *f = callee_of(i);

		if (f)
			take_function(at->d, f);
		else
			refuse(at, "it calls through a pointer", "");
	}
	for (size_t k = 0; k < i->operand_count; k++)
		if (!is_callee(i, &i->operands[k]) && i->mnemonic->op_class != OP_DIRECTIVE)
			look_at_operand(at, &i->operands[k], false);
}

/* Parses the body of @copy and handles everything that it names. */
static void look_at_function(struct detached *d, struct function *copy)
{
	if (!copy->has_body)
		return;
	parse_body(copy, &d->arena);
	for_each_instruction (i, copy)
		look_at_instruction(&(struct place){d, copy, i});
}

/* Copies the kernel and what it calls; each function is appended to the list when it is named. */
static void look_at_kernel(void *data)
{
	struct detached *d = data;

	if (d->module->address_size != 64)
		refuse(&(struct place){.d = d, .f = d->kernel}, "its addresses have 32 bits", "");
	look_at_function(d, parse_copy(d->kernel, d->kernel->name));
	for (struct function *f = d->functions; f; f = f->next) {
		look_at_function(d, f);
		if (f->is_read)
			detach_strip(f);
	}
}

bool symbol_offset(const struct operand *o, uint64_t *offset)
{
	const char *text = o->suffix ? o->suffix : "0";
	bool minus;

	text += *text == '+';
	minus = *text == '-';
	text += minus;
	if (!token_integer(text, strlen(text), offset))
		return false;
	if (minus)
		*offset = -*offset;
	return true;
}

static void list_init(struct symbol_list *list)
{
	*list = (struct symbol_list){.end = &list->first};
}

void detach_init(struct detached *d, struct function *kernel)
{
	struct module *module = kernel->module;

	*d = (struct detached){.module = module, .kernel = kernel, .functions_end = &d->functions};
	list_init(&d->addresses);
	list_init(&d->copies);
	list_init(&d->kept);
	arena_init(&d->arena, module->arena->max, module->diag);
	if (diag_try(module->diag, look_at_kernel, d) == -ENOMEM)
		diag_stop_again(module->diag);
	d->refusal = diag_take(module->diag);
}

void detach_deinit(struct detached *d)
{
	arena_deinit(&d->arena);
}

static void print_head(struct text *out, const struct module *module)
{
	text_print(out, ".version %u.%u\n.target ", module->version_major, module->version_minor);
	text_string(out, module->target);
	text_print(out, "\n.address_size %u\n", module->address_size);
}

static void print_variables(struct text *out, const struct detached *d)
{
	for (const struct symbol *s = d->copies.first; s; s = s->next) {
		text_print(out, ".visible .const .align %u .b8 ", variable_align(s->copy));
		text_string(out, s->copy->name);
		text_print(out, "[%llu];\n", (unsigned long long)s->copy->size);
	}
	/* In the order of the module, which decides their places in shared memory. */
	for (const struct variable *v = d->module->variables; v; v = v->next)
		if (v->symbol && v->symbol->kind == SYMBOL_KEPT)
			text_strings(out, v->linkage, " ", v->before, v->name, v->after, ";\n");
}

void detach_print(struct text *out, const struct detached *d)
{
	print_head(out, d->module);
	print_variables(out, d);
	for (const struct function *f = d->functions; f; f = f->next)
		emit_declaration(out, f);
	for (const struct function *f = d->functions; f; f = f->next) {
		if (!f->is_read)
			continue;
		emit_function(out, f);
		text_string(out, "\n");
	}
}

void detach_strip(struct function *f)
{
	for (struct block *b = f->entry; b; b = b->next) {
		for (struct instruction *i = b->first, *next; i; i = next) {
			next = i->next;
			if (!strcmp(i->mnemonic->text, ".loc"))
				edit_remove(i);
		}
	}
}
