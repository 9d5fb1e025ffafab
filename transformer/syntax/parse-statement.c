/* The statements of a body or of a template, and their scopes. */
#include "syntax/parse.h"

#include "syntax/opcode.h"
#include "syntax/parser.h"

#include <string.h>

#define MNEMONIC_MAX 256 /* characters */

void parser_open_scope(struct parser *p)
{
	struct scope *scope = arena_new(p->arena, struct scope);

	if (p->scope->depth == SCOPE_DEPTH_MAX)
		parser_fail(p, "braces too deep");
	scope->outer = p->scope;
	scope->depth = p->scope->depth + 1;
	p->scope = scope;
}

/* A label that a scope names but does not define belongs to the scope outside. */
static void pass_to_outer_scope(struct parser *p, const struct binding *b)
{
	if (b->kind != BINDING_LABEL || b->block->placed || b->block->same)
		return;
	if (p->scope->depth < 2)
		parser_fail(p, "the label '%.80s' is not defined", b->name);
	b->block->same = parse_label(p, b->name);
	p->has_aliases = true;
}

static void close_scope(struct parser *p)
{
	struct scope *scope = p->scope;

	scope_close(scope);
	p->scope = scope->outer;
	for (const struct binding *b = scope->bindings; b; b = b->next)
		pass_to_outer_scope(p, b);
}

static void define_label(struct parser *p, const char *name)
{
	bool renames = parser_renames(p, name);
	struct block *block = parse_label(p, name);

	if (block->placed)
		parser_fail(p, "the label '%.80s' is defined twice", name);
	block->label = renames ? edit_fresh_name(p->function, name) : name;
	cursor_place(&p->cursor, block);
}

/* Parses `name: .branchtargets A, B;` */
static void parse_targets(struct parser *p, const char *name)
{
	struct binding *b = parser_declare(p, &name, BINDING_TABLE);
	struct block **targets = NULL;
	size_t n = 0, room = 0;

	do {
		targets = arena_grow(p->arena, targets, n, &room, sizeof(struct block *));
		targets[n++] = parse_label(p, parser_name(p));
	} while (parser_accept(p, ','));
	b->table = edit_new_table(p->function, name, targets, n);
	parser_expect(p, ';');
}

/* Keeps `name: .callprototype ...;` and `name: .calltargets ...;` as they are. */
static void parse_prototype(struct parser *p, const char *name)
{
	struct binding *b = parser_declare(p, &name, BINDING_PROTOTYPE);
	const char *start = p->token.start;
	char *text;

	b->text = name;
	while (p->token.kind != ';' && p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD)
		parser_next(p);
	parser_expect(p, ';');
	text = arena_alloc(p->arena, strlen(name) + (size_t)(p->end - start) + 3);
	mempcpy(mempcpy(mempcpy(text, name, strlen(name)), ": ", 2), start,
		(size_t)(p->end - start));
	edit_declare(p->function, text);
}

/* The label and its colon have been taken. */
static void parse_labelled(struct parser *p, const char *name)
{
	if (parser_at(p, ".branchtargets")) {
		parser_next(p);
		parse_targets(p, name);
	} else if (parser_at(p, ".callprototype") || parser_at(p, ".calltargets"))
		parse_prototype(p, name);
	else
		define_label(p, name);
}

static size_t add_part(struct parser *p, char *to, size_t room, const struct token *part)
{
	if (part->len >= room)
		parser_fail(p, "the instruction is too long");
	memcpy(to, part->start, part->len);
	return part->len;
}

/* @word has been taken; its modifiers follow. */
static const struct mnemonic *parse_mnemonic(struct parser *p, const struct token *word)
{
	const struct mnemonic *m;
	char text[MNEMONIC_MAX];
	size_t n = add_part(p, text, sizeof(text), word);

	for (; p->token.kind == TOKEN_DOT; parser_next(p))
		n += add_part(p, text + n, sizeof(text) - n, &p->token);
	m = opcode_mnemonic(p->module, text, n);
	if (!m)
		parser_fail(p, "too many modifiers");
	return m;
}

static struct instruction *new_instruction(struct parser *p, struct position at)
{
	struct instruction *i = arena_new(p->arena, struct instruction);

	if (!p->is_template)
		i->at = at;
	return i;
}

/* @word has been taken. @guard stood in front of it, or is NULL. */
static void parse_instruction(struct parser *p, const struct token *word, struct reg *guard,
			      bool guard_negated)
{
	struct instruction *i = new_instruction(p, word->at);

	i->guard = guard;
	i->guard_negated = guard_negated;
	i->mnemonic = parse_mnemonic(p, word);
	parse_operands(p, i);
	cursor_insert(&p->cursor, i);
}

static void parse_guarded(struct parser *p)
{
	bool negated = parser_accept(p, '!');
	struct reg *guard = parse_register(p);
	struct token word = p->token;

	parser_expect(p, TOKEN_WORD);
	parse_instruction(p, &word, guard, negated);
}

/* .loc has no terminator: `.loc 1 2 3, function_name LABEL+4, inlined_at 1 2 3` */
static bool loc_goes_on(const struct parser *p, const struct token *last)
{
	if (p->token.kind == TOKEN_WORD)
		return last->kind == ',' || token_is(last, "function_name");
	return p->token.kind == TOKEN_NUMBER || p->token.kind == ',' || p->token.kind == '+';
}

static bool pragma_goes_on(const struct parser *p, const struct token *last)
{
	return last->kind != ';' && p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD;
}

/* .loc and .pragma become instructions with their text as the only operand. */
static void parse_kept(struct parser *p)
{
	struct token first = p->token, last;
	struct instruction *i = new_instruction(p, first.at);
	bool is_pragma = parser_at(p, ".pragma");

	i->mnemonic = opcode_mnemonic(p->module, first.start, first.len);
	i->operands = arena_new(p->arena, struct operand);
	do {
		last = p->token;
		parser_next(p);
	} while (is_pragma ? pragma_goes_on(p, &last) : loc_goes_on(p, &last));
	if (is_pragma && last.kind != ';')
		parser_expect(p, ';');
	i->operand_count = 1;
	i->operands->kind = OPERAND_SYMBOL;
	i->operands->text = parser_text(p, first.start, last.start + last.len);
	cursor_insert(&p->cursor, i);
}

static void parse_directive(struct parser *p)
{
	if (parser_at(p, ".reg")) {
		parse_registers(p);
	} else if (parser_at(p, ".loc") || parser_at(p, ".pragma")) {
		parse_kept(p);
	} else {
		parse_variables(p, ";", &p->function->variables_end);
		parser_expect(p, ';');
	}
}

static void parse_word(struct parser *p)
{
	struct token word = p->token;

	parser_next(p);
	if (parser_accept(p, ':'))
		parse_labelled(p, parser_token_text(p, &word));
	else
		parse_instruction(p, &word, NULL, false);
}

static void parse_statement(struct parser *p, unsigned bottom)
{
	if (p->token.kind == TOKEN_WORD)
		parse_word(p);
	else if (p->token.kind == TOKEN_DOT)
		parse_directive(p);
	else if (parser_accept(p, '@'))
		parse_guarded(p);
	else if (parser_accept(p, '{'))
		parser_open_scope(p);
	else if (p->token.kind == '}' && p->scope->depth == bottom)
		parser_fail(p, "an unmatched closing brace");
	else if (parser_accept(p, '}'))
		close_scope(p);
	else if (!parser_accept(p, ';'))
		parser_fail(p, "an instruction expected");
}

static struct block *resolve(struct block *block)
{
	while (block->same)
		block = block->same;
	return block;
}

/* Replaces blocks that stand for a block of an outer scope. */
static void resolve_aliases(struct function *f)
{
	for_each_instruction (i, f)
		for (size_t k = 0; k < i->operand_count; k++)
			if (i->operands[k].kind == OPERAND_BLOCK)
				i->operands[k].block = resolve(i->operands[k].block);
	for (struct table *t = f->tables; t; t = t->next)
		for (size_t k = 0; k < t->target_count; k++)
			t->targets[k] = resolve(t->targets[k]);
}

void parse_statements(void *parser)
{
	struct parser *p = parser;
	unsigned bottom = p->scope->depth;

	while (p->token.kind != TOKEN_END)
		parse_statement(p, bottom);
	if (p->scope->depth != bottom)
		parser_fail(p, "a brace is never closed");
	close_scope(p);
	if (p->has_aliases)
		resolve_aliases(p->function);
}

int parser_run(struct parser *p, void (*parse)(void *parser), const char *text, size_t len,
	       struct position at)
{
	int error;

	lex_init(&p->lexer, text, len, at);
	parser_next(p);
	error = diag_try(p->module->diag, parse, p);
	for (; p->scope != p->module->scope; p->scope = p->scope->outer)
		scope_close(p->scope);
	return error;
}

static void bind_parameters(struct parser *p, struct variable *first)
{
	for (struct variable *v = first; v; v = v->next) {
		if (v->space == SPACE_REG)
			parser_fail(p, "a parameter in a register");
		if (strcmp(v->name, "_") != 0)
			parser_bind(p, v->name, BINDING_VARIABLE)->variable = v;
	}
}

/* Makes an empty body: one block, and the carry flag as a register. */
static void begin_body(struct function *f, struct arena *arena)
{
	f->arena = arena;
	f->is_read = false;
	f->declarations = NULL;
	f->declarations_end = &f->declarations;
	f->regs = NULL;
	f->regs_end = &f->regs;
	f->variables = NULL;
	f->variables_end = &f->variables;
	f->tables = NULL;
	f->tables_end = &f->tables;
	f->loops = NULL;
	f->reg_count = f->block_count = f->fresh = 0;
	f->carry = edit_new_register(f, "", TYPE_pred, 1);
	f->carry->in_group = true;
	f->entry = f->last = edit_new_block(f);
	f->entry->placed = true;
}

/* A body that ends without a return gets one. */
static void end_body(struct parser *p)
{
	struct token ret = {.kind = TOKEN_WORD, .start = "ret", .len = 3};

	if (!block_falls_through(p->function->last))
		return;
	p->cursor = cursor_end(p->function, p->function->last);
	p->token = (struct token){.kind = ';'};
	parse_instruction(p, &ret, NULL, false);
}

static void parse_function(void *parser)
{
	struct parser *p = parser;

	parser_open_scope(p);
	bind_parameters(p, p->function->returns);
	bind_parameters(p, p->function->params);
	parser_open_scope(p);
	parse_statements(p);
	end_body(p);
}

void parse_body(struct function *function, struct arena *arena)
{
	struct module *module = function->module;
	struct parser p = {
		.module = module, .function = function, .arena = arena, .scope = module->scope};

	begin_body(function, arena);
	p.cursor = cursor_end(function, function->entry);
	if (parser_run(&p, parse_function, function->body.start, function->body.len,
		       function->body_at))
		diag_stop_again(module->diag);
	function->is_read = true;
}
