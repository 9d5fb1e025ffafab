/* Initial values of variables. They are recorded while parsing and written when all addresses are
 * known. */
#include "simcuda/ptx/parse/parse.h"

static int add_initial(struct ptx_parser *p, const struct ptx_initial *initial)
{
	struct ptx_initial *copy;

	if (initial->offset > initial->variable->size ||
	    initial->bytes > initial->variable->size - initial->offset)
		return ptx_fail(p, "more values than %s has room for", initial->variable->name);
	copy = ptx_arena_take(&p->names, sizeof(*copy));
	if (!copy)
		return ptx_no_memory(p);
	*copy = *initial;
	*p->last_initial = copy;
	p->last_initial = &copy->next;
	return 0;
}

/* name, name+4, generic(name)+4 */
static int parse_initial_address(struct ptx_parser *p, struct ptx_initial *initial)
{
	bool generic = ptx_token_is(&p->token, PTX_TOKEN_WORD, "generic") &&
		       ptx_token_is(&p->next, PTX_TOKEN_MARK, "(");

	if (generic) {
		ptx_advance(p);
		ptx_advance(p);
	}
	if (p->token.kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected a name, found %.*s", PTX_SHOW(&p->token));
	initial->name = p->token;
	ptx_advance(p);
	if (generic && ptx_expect(p, ")"))
		return p->result;
	if (ptx_at_mark(p, "+") || ptx_at_mark(p, "-"))
		return ptx_parse_integer(p, &initial->bits);
	return p->result;
}

static int parse_initial(struct ptx_parser *p, struct ptx_initial *initial, enum ptx_type type)
{
	initial->name.len = 0;
	initial->mask = UINT64_MAX;
	initial->bits = 0;
	if (p->token.kind == PTX_TOKEN_WORD)
		return parse_initial_address(p, initial);
	/* 0xFF00(name): one byte of an address. */
	if (p->token.kind == PTX_TOKEN_INTEGER && ptx_token_is(&p->next, PTX_TOKEN_MARK, "(")) {
		initial->mask = p->token.bits;
		if (!initial->mask)
			return ptx_fail(p, "a mask of no bits");
		ptx_advance(p);
		ptx_advance(p);
		int r = parse_initial_address(p, initial);
		return r ? r : ptx_expect(p, ")");
	}
	return ptx_parse_constant(p, type, &initial->bits);
}

/* An array and its initial values. */
struct filling {
	struct ptx_initial initial;
	enum ptx_type type;
	const uint64_t *dimensions;
	unsigned n;
};

/* The values of one element, or of the array below dimension @level, from @offset on. */
static int fill(struct ptx_parser *p, struct filling *filling, unsigned level, uint64_t offset)
{
	uint64_t step = ptx_types[filling->type].bytes;

	if (level == filling->n) {
		filling->initial.offset = offset;
		int r = parse_initial(p, &filling->initial, filling->type);
		return r ? r : add_initial(p, &filling->initial);
	}
	for (unsigned k = level + 1; k < filling->n; k++)
		step *= filling->dimensions[k];
	if (ptx_expect(p, "{"))
		return p->result;
	for (uint64_t k = 0; !ptx_at_mark(p, "}"); k++) {
		if (k == filling->dimensions[level])
			return ptx_fail(p, "more values than %s has room for",
					filling->initial.variable->name);
		if (fill(p, filling, level + 1, offset + k * step))
			return p->result;
		if (!ptx_accept(p, ","))
			break;
	}
	return ptx_expect(p, "}");
}

int ptx_parse_initials(struct ptx_parser *p, struct ptx_variable *variable, enum ptx_type type,
		       const uint64_t *dimensions, unsigned n)
{
	struct filling filling = {
		{.variable = variable, .bytes = ptx_types[type].bytes}, type, dimensions, n};

	return fill(p, &filling, 0, 0);
}

/* [] = {…}: as many as there are values, which a second lexer counts. */
uint64_t ptx_count_initials(const struct ptx_parser *p)
{
	struct ptx_lexer lexer = p->lexer;
	struct ptx_token token = p->next;
	uint64_t n = 1;
	unsigned depth = 0;

	do {
		depth += ptx_token_is(&token, PTX_TOKEN_MARK, "{") ? 1u : 0u;
		depth -= ptx_token_is(&token, PTX_TOKEN_MARK, "}") ? 1u : 0u;
		n += depth == 1 && ptx_token_is(&token, PTX_TOKEN_MARK, ",");
		token = ptx_lex(&lexer);
	} while (depth && token.kind != PTX_TOKEN_END && token.kind != PTX_TOKEN_BAD);
	return n;
}

/* The value of a name at the end: an address. */
static bool address_of(struct ptx_parser *p, const struct ptx_token *name, uint64_t *out)
{
	struct ptx_symbol *symbol = ptx_lookup(p, p->module_scope, name);

	if (symbol && symbol->kind == PTX_SYMBOL_FUNCTION) {
		*out = (uintptr_t)symbol->function;
		return true;
	}
	if (!symbol || symbol->kind != PTX_SYMBOL_VARIABLE ||
	    symbol->variable->space == PTX_SPACE_SHARED)
		return false;
	*out = (uintptr_t)p->module->memory + symbol->variable->offset;
	return true;
}

int ptx_apply_initials(struct ptx_parser *p)
{
	for (struct ptx_initial *i = p->initials; i; i = i->next) {
		uint64_t value = i->bits;
		if (i->name.len) {
			uint64_t address;
			if (!address_of(p, &i->name, &address))
				return ptx_fail_at(p, &i->name, "%.*s has no address to start with",
						   PTX_SHOW(&i->name));
			value = ((address + value) & i->mask) >> __builtin_ctzll(i->mask);
		}
		memcpy(p->module->memory + i->variable->offset + i->offset, &value, i->bytes);
	}
	return 0;
}
