/* The statements of a body or of a template, and their scopes. */
#include "syntax/parse.h"

#include "syntax/opcode.h"
#include "syntax/parser.h"

#include <string.h>

#define MNEMONIC_MAX 256 /* characters */

bool parser_open_scope(struct parser *p)
{
	struct scope *scope;

	if (p->scope->depth == SCOPE_DEPTH_MAX)
		return parser_fail(p, "braces too deep");
	scope = arena_new(p->arena, struct scope);
	if (!scope)
		return parser_no_memory(p);
	scope->outer = p->scope;
	scope->depth = p->scope->depth + 1;
	p->scope = scope;
	return true;
}

/* A label that a scope names but does not define belongs to the scope outside. */
static bool pass_to_outer_scope(struct parser *p, const struct binding *b)
{
	struct block *outside;

	if (b->kind != BINDING_LABEL || b->block->placed || b->block->same)
		return true;
	if (p->scope->depth < 2)
		return parser_fail(p, "the label '%.80s' is not defined", b->name);
	outside = parse_label(p, b->name);
	if (!outside)
		return false;
	b->block->same = outside;
	p->has_aliases = true;
	return true;
}

static bool close_scope(struct parser *p)
{
	struct scope *scope = p->scope;
	bool good = true;

	scope_close(scope);
	p->scope = scope->outer;
	for (const struct binding *b = scope->bindings; b && good; b = b->next)
		good = pass_to_outer_scope(p, b);
	return good;
}

static bool define_label(struct parser *p, const char *name)
{
	bool renames = parser_renames(p, name);
	struct block *block = parse_label(p, name);

	if (!block)
		return false;
	if (block->placed)
		return parser_fail(p, "the label '%.80s' is defined twice", name);
	block->label = renames ? parser_fresh(p, name) : name;
	cursor_place(&p->cursor, block);
	return block->label;
}

/* Parses `name: .branchtargets A, B;` */
static bool parse_targets(struct parser *p, const char *name)
{
	bool renames = parser_renames(p, name);
	struct binding *b = parser_bind(p, name, BINDING_TABLE);
	struct block **targets = NULL;
	size_t n = 0, room = 0;

	if (!b)
		return false;
	do {
		const char *label = parser_name(p);
		struct block *block = label ? parse_label(p, label) : NULL;

		if (!block)
			return false;
		if (n == room) {
			struct block **more;

			room = room ? 2 * room : 8;
			more = arena_array(p->arena, room, sizeof(*more));
			if (!more)
				return parser_no_memory(p);
			if (n)
				memcpy(more, targets, n * sizeof(*more));
			targets = more;
		}
		targets[n++] = block;
	} while (parser_accept(p, ','));
	if (renames)
		name = parser_fresh(p, name);
	b->table = name ? edit_new_table(p->function, name, targets, n) : NULL;
	return b->table ? parser_expect(p, ';') : parser_no_memory(p);
}

/* Keeps `name: .callprototype ...;` and `name: .calltargets ...;` as they are. */
static bool parse_prototype(struct parser *p, const char *name)
{
	bool renames = parser_renames(p, name);
	struct binding *b = parser_bind(p, name, BINDING_PROTOTYPE);
	const char *start = p->token.start, *fresh;
	size_t len;
	char *text;

	if (!b)
		return false;
	fresh = renames ? parser_fresh(p, name) : name;
	while (p->token.kind != ';' && p->token.kind != TOKEN_END && p->token.kind != TOKEN_BAD)
		parser_next(p);
	len = (size_t)(p->token.start - start);
	if (!fresh || !parser_expect(p, ';'))
		return false;
	text = arena_alloc(p->arena, strlen(fresh) + len + 4);
	if (!text)
		return parser_no_memory(p);
	b->text = fresh;
	*(char *)mempcpy(mempcpy(mempcpy(text, fresh, strlen(fresh)), ": ", 2), start, len) = ';';
	return edit_declare(p->function, text) || parser_no_memory(p);
}

/* The label and its colon have been taken. */
static bool parse_labelled(struct parser *p, const char *name)
{
	if (parser_at(p, ".branchtargets")) {
		parser_next(p);
		return parse_targets(p, name);
	}
	if (parser_at(p, ".callprototype") || parser_at(p, ".calltargets"))
		return parse_prototype(p, name);
	return define_label(p, name);
}

/* @word has been taken; its modifiers follow. */
static const struct mnemonic *parse_mnemonic(struct parser *p, const struct token *word)
{
	const struct mnemonic *m;
	char text[MNEMONIC_MAX];
	size_t n = word->len;

	if (n >= sizeof(text))
		goto too_long;
	memcpy(text, word->start, n);
	for (; p->token.kind == TOKEN_DOT; parser_next(p)) {
		if (p->token.len >= sizeof(text) - n)
			goto too_long;
		memcpy(text + n, p->token.start, p->token.len);
		n += p->token.len;
	}
	m = opcode_mnemonic(p->module, text, n);
	if (!m)
		parser_fail(p, "no memory, or too many modifiers");
	return m;
too_long:
	parser_fail(p, "the instruction is too long");
	return NULL;
}

static struct instruction *new_instruction(struct parser *p, struct position at)
{
	struct instruction *i = arena_new(p->arena, struct instruction);

	if (!i)
		parser_no_memory(p);
	else if (!p->is_template)
		i->at = at;
	return i;
}

/* @word has been taken. @guard stood in front of it, or is NULL. */
static bool parse_instruction(struct parser *p, const struct token *word, struct reg *guard,
			      bool guard_negated)
{
	struct instruction *i = new_instruction(p, word->at);

	if (!i)
		return false;
	i->guard = guard;
	i->guard_negated = guard_negated;
	i->mnemonic = parse_mnemonic(p, word);
	if (!i->mnemonic || !parse_operands(p, i))
		return false;
	cursor_insert(&p->cursor, i);
	return true;
}

static bool parse_guarded(struct parser *p)
{
	bool negated = parser_accept(p, '!');
	struct reg *guard = parse_register(p);
	struct token word = p->token;

	return guard && parser_expect(p, TOKEN_WORD) && parse_instruction(p, &word, guard, negated);
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
static bool parse_kept(struct parser *p)
{
	struct token first = p->token, last = first;
	struct instruction *i = new_instruction(p, first.at);
	bool is_pragma = parser_at(p, ".pragma");

	if (!i)
		return false;
	i->mnemonic = opcode_mnemonic(p->module, first.start, first.len);
	i->operands = arena_new(p->arena, struct operand);
	if (!i->mnemonic || !i->operands)
		return parser_no_memory(p);
	do {
		last = p->token;
		parser_next(p);
	} while (is_pragma ? pragma_goes_on(p, &last) : loc_goes_on(p, &last));
	if (is_pragma && last.kind != ';')
		return parser_expect(p, ';');
	i->operand_count = 1;
	i->operands->kind = OPERAND_SYMBOL;
	i->operands->text = parser_text(p, first.start, last.start + last.len);
	cursor_insert(&p->cursor, i);
	return i->operands->text;
}

static bool parse_directive(struct parser *p)
{
	if (parser_at(p, ".reg"))
		return parse_registers(p);
	if (parser_at(p, ".loc") || parser_at(p, ".pragma"))
		return parse_kept(p);
	return parse_variables(p, ";", &p->function->variables_end) && parser_expect(p, ';');
}

static bool parse_word(struct parser *p)
{
	struct token word = p->token;
	const char *name;

	parser_next(p);
	if (p->token.kind != ':')
		return parse_instruction(p, &word, NULL, false);
	name = parser_text(p, word.start, word.start + word.len);
	parser_next(p);
	return name && parse_labelled(p, name);
}

static bool parse_statement(struct parser *p, unsigned bottom)
{
	switch (p->token.kind) {
	case TOKEN_WORD:
		return parse_word(p);
	case TOKEN_DOT:
		return parse_directive(p);
	case '@':
		parser_next(p);
		return parse_guarded(p);
	case '{':
		parser_next(p);
		return parser_open_scope(p);
	case '}':
		if (p->scope->depth == bottom)
			return parser_fail(p, "an unmatched closing brace");
		parser_next(p);
		return close_scope(p);
	case ';':
		parser_next(p);
		return true;
	default:
		return parser_fail(p, "an instruction expected");
	}
}

static void resolve_operand(struct operand *operand)
{
	if (operand->kind == OPERAND_BLOCK)
		while (operand->block->same)
			operand->block = operand->block->same;
}

/* Replaces blocks that stand for a block of an outer scope. */
static void resolve_aliases(struct function *f)
{
	for_each_instruction(i, f) for (size_t k = 0; k < i->operand_count; k++)
		resolve_operand(&i->operands[k]);
	for (struct table *t = f->tables; t; t = t->next)
		for (size_t k = 0; k < t->target_count; k++)
			while (t->targets[k]->same)
				t->targets[k] = t->targets[k]->same;
}

bool parse_statements(struct parser *p)
{
	unsigned bottom = p->scope->depth;

	while (p->token.kind != TOKEN_END)
		if (!parse_statement(p, bottom))
			return false;
	if (p->scope->depth != bottom)
		return parser_fail(p, "a brace is never closed");
	if (!close_scope(p))
		return false;
	if (p->has_aliases)
		resolve_aliases(p->function);
	return true;
}

static bool bind_parameters(struct parser *p, struct variable *first)
{
	for (struct variable *v = first; v; v = v->next) {
		struct binding *b;

		if (v->space == SPACE_REG)
			return parser_fail(p, "a parameter in a register");
		if (!strcmp(v->name, "_"))
			continue;
		b = parser_bind(p, v->name, BINDING_VARIABLE);
		if (!b)
			return false;
		b->variable = v;
	}
	return true;
}

/* Makes an empty body: one block, and the carry flag as a register. */
static bool begin_body(struct function *f, struct arena *arena)
{
	f->arena = arena;
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
	f->entry = f->last = edit_new_block(f);
	if (!f->carry || !f->entry)
		return false;
	f->carry->in_group = true;
	f->entry->placed = true;
	return true;
}

/* A body that ends without a return gets one. */
static bool end_body(struct parser *p)
{
	struct token ret = {.kind = TOKEN_WORD, .start = "ret", .len = 3};

	if (!block_falls_through(p->function->last))
		return true;
	p->cursor = cursor_end(p->function, p->function->last);
	p->token = (struct token){.kind = ';'};
	return parse_instruction(p, &ret, NULL, false);
}

int parse_body(struct function *function, struct arena *arena, struct diag *diag)
{
	struct module *module = function->module;
	struct parser p = {.module = module,
			   .function = function,
			   .arena = arena,
			   .diag = diag,
			   .scope = module->scope};

	module->diag = diag;
	function->is_read = false;
	if (!begin_body(function, arena))
		return diag_no_memory(diag);
	lex_init(&p.lexer, function->body.start, function->body.len, function->body_at);
	parser_next(&p);
	p.cursor = cursor_end(function, function->entry);
	if (parser_open_scope(&p) && bind_parameters(&p, function->returns) &&
	    bind_parameters(&p, function->params) && parser_open_scope(&p) && parse_statements(&p))
		end_body(&p);
	for (; p.scope != module->scope; p.scope = p.scope->outer)
		scope_close(p.scope);
	function->is_read = !diag->error;
	return diag->error;
}
