/* Declarations of variables, parameters and registers, and initialisers. Variables in a frame and
 * parameters get their offset at once; .global, .const and .shared variables at the end. */
#include "simcuda/ptx/parse/parse.h"

#define ALIGN_MAX      1024
#define DIMENSIONS_MAX 8

/* The part of a declaration before the name. */
struct shape {
	enum ptx_type type;
	uint64_t align; /* 0: the type's */
	uint64_t vector;
	struct ptx_token token;
};

static int parse_align(struct ptx_parser *p, uint64_t *out)
{
	ptx_advance(p);
	if (p->token.kind != PTX_TOKEN_INTEGER || p->token.bits == 0 || p->token.bits > ALIGN_MAX ||
	    (p->token.bits & (p->token.bits - 1)))
		return ptx_fail(p, "expected an alignment, found %.*s", PTX_SHOW(&p->token));
	*out = p->token.bits;
	ptx_advance(p);
	return p->result;
}

/* `.ptr .global .align 4` describes a pointer's target. */
static int skip_pointer(struct ptx_parser *p)
{
	uint64_t align;

	ptx_advance(p);
	while (p->token.kind == PTX_TOKEN_DOT && !ptx_at_dot(p, "align"))
		ptx_advance(p);
	return ptx_at_dot(p, "align") ? parse_align(p, &align) : p->result;
}

/* .attribute(.managed), .attribute(.unified(1, 2)): placement only. */
static int skip_attribute(struct ptx_parser *p)
{
	unsigned depth = 0;

	ptx_advance(p);
	do {
		depth += ptx_at_mark(p, "(") ? 1u : 0u;
		depth -= ptx_at_mark(p, ")") ? 1u : 0u;
		if (p->token.kind == PTX_TOKEN_END)
			return ptx_fail(p, "an attribute without an end");
		ptx_advance(p);
	} while (depth);
	return p->result;
}

static int parse_shape(struct ptx_parser *p, struct shape *shape)
{
	*shape = (struct shape){.type = PTX_TYPES, .vector = 1, .token = p->token};

	while (!p->result && p->token.kind == PTX_TOKEN_DOT) {
		enum ptx_type type = ptx_type_find(&p->token);
		if (ptx_at_dot(p, "align")) {
			parse_align(p, &shape->align);
			continue;
		}
		if (ptx_at_dot(p, "ptr")) {
			skip_pointer(p);
			continue;
		}
		if (ptx_at_dot(p, "attribute")) {
			skip_attribute(p);
			continue;
		}
		if (ptx_at_dot(p, "v2"))
			shape->vector = 2;
		else if (ptx_at_dot(p, "v4"))
			shape->vector = 4;
		else if (type != PTX_TYPES && shape->type == PTX_TYPES)
			shape->type = type;
		else
			return ptx_fail(p, "unknown word .%.*s in a declaration",
					PTX_SHOW(&p->token));
		ptx_advance(p);
	}
	if (!p->result && shape->type == PTX_TYPES)
		ptx_fail(p, "a declaration without a type");
	return p->result;
}

/* Behind the name: [4][], elements of each dimension. An empty one is 0. */
static int parse_dimensions(struct ptx_parser *p, uint64_t *dimensions, unsigned *n)
{
	for (*n = 0; ptx_accept(p, "[");) {
		uint64_t count = 0;
		if (*n == DIMENSIONS_MAX)
			return ptx_fail(p, "an array of too many dimensions");
		if (!ptx_at_mark(p, "]") && ptx_parse_integer(p, &count))
			return p->result;
		if (ptx_expect(p, "]"))
			return p->result;
		dimensions[(*n)++] = count;
	}
	return p->result;
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) / align * align;
}

/* @size: bytes of all elements; false: more than a module may have. */
static bool array_bytes(const struct shape *shape, const uint64_t *dimensions, unsigned n,
			uint64_t *size)
{
	*size = shape->vector * ptx_types[shape->type].bytes;
	for (unsigned k = 0; k < n; k++)
		if (__builtin_mul_overflow(*size, dimensions[k], size) ||
		    *size > PTX_MODULE_BYTES_MAX)
			return false;
	return true;
}

static struct ptx_variable *new_variable(struct ptx_parser *p, const struct ptx_token *name,
					 enum ptx_space space, const struct shape *shape)
{
	struct ptx_variable *v = ptx_arena_take(&p->module->arena, sizeof(*v));

	if (!v || !(v->name = ptx_arena_string(&p->module->arena, name->text, name->len))) {
		ptx_no_memory(p);
		return NULL;
	}
	v->space = space;
	v->of_module = !p->function;
	v->number = p->module->variable_count++;
	v->align = shape->vector * ptx_types[shape->type].bytes;
	if (shape->align > v->align)
		v->align = shape->align;
	if (v->align == 0)
		v->align = 1;
	return v;
}

/* A module variable exists once for all functions; a later declaration may define an extern one. */
static int place(struct ptx_parser *p, struct ptx_variable *v)
{
	struct ptx_function *f = p->function;

	switch (v->space) {
	case PTX_SPACE_LOCAL:
	case PTX_SPACE_PARAM:
		v->offset = align_up(f->frame_bytes, v->align);
		v->space = PTX_SPACE_LOCAL;
		if (v->offset + v->size > PTX_LOCAL_BYTES_MAX)
			return ptx_fail(p, "local variables of %s take over %d bytes", f->name,
					PTX_LOCAL_BYTES_MAX);
		f->frame_bytes = (uint32_t)(v->offset + v->size);
		return 0;
	case PTX_SPACE_SHARED:
		if (v->size > PTX_SHARED_BYTES_MAX)
			return ptx_fail(p, "shared variable %s takes over %d bytes", v->name,
					PTX_SHARED_BYTES_MAX);
		return 0;
	default:
		v->offset = align_up(p->module->memory_bytes, v->align);
		p->module->memory_bytes = v->offset + v->size;
		if (p->module->memory_bytes > PTX_MODULE_BYTES_MAX)
			return ptx_fail(p, "the variables take over %llu bytes",
					PTX_MODULE_BYTES_MAX);
		if (!f)
			HASH_ADD_KEYPTR(hh, p->module->globals, v->name, strlen(v->name), v);
		return 0;
	}
}

static int parse_variable(struct ptx_parser *p, enum ptx_space space, const struct shape *shape,
			  bool is_extern)
{
	uint64_t dimensions[DIMENSIONS_MAX + 1];
	struct ptx_token name = p->token;
	struct ptx_variable *v;
	unsigned n;

	if (name.kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected a name, found %.*s", PTX_SHOW(&name));
	v = new_variable(p, &name, space, shape);
	if (!v)
		return p->result;
	ptx_advance(p);
	if (parse_dimensions(p, dimensions, &n))
		return p->result;
	bool open = n > 0 && dimensions[0] == 0;
	if (open && ptx_at_mark(p, "="))
		dimensions[0] = ptx_count_initials(p);
	if (!array_bytes(shape, dimensions, n, &v->size))
		return ptx_fail_at(p, &name, "%s is too large", v->name);
	v->dynamic = space == PTX_SPACE_SHARED && open && is_extern;
	if (is_extern && !v->dynamic)
		return ptx_fail_at(p, &name, "extern %s: nothing is linked here", v->name);

	struct ptx_symbol *symbol = ptx_declare(p, p->scope, &name, PTX_SYMBOL_VARIABLE);
	if (!symbol)
		return p->result;
	symbol->variable = v;
	if (place(p, v))
		return p->result;
	if (!ptx_accept(p, "="))
		return p->result;
	if (space != PTX_SPACE_GLOBAL && space != PTX_SPACE_CONST)
		return ptx_fail(p, "%s cannot have an initial value", v->name);
	/* A vector is one more dimension. */
	if (shape->vector > 1)
		dimensions[n++] = shape->vector;
	return ptx_parse_initials(p, v, shape->type, dimensions, n);
}

int ptx_parse_variables(struct ptx_parser *p, enum ptx_space space, bool is_extern)
{
	struct shape shape;
	int r = parse_shape(p, &shape);

	if (!r && ptx_types[shape.type].bytes == 0)
		return ptx_fail_at(p, &shape.token, "a variable cannot be a predicate");
	while (!r) {
		r = parse_variable(p, space, &shape, is_extern);
		if (r || !ptx_accept(p, ","))
			break;
	}
	return r ? r : ptx_expect(p, ";");
}

static int parse_register(struct ptx_parser *p, const struct shape *shape)
{
	struct ptx_token name = p->token;
	enum ptx_symbol_kind kind = PTX_SYMBOL_REGISTER;
	uint64_t count = 0;

	if (name.kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected a register, found %.*s", PTX_SHOW(&name));
	ptx_advance(p);
	if (ptx_accept(p, "<")) {
		kind = PTX_SYMBOL_FAMILY;
		if (p->token.kind != PTX_TOKEN_INTEGER)
			return ptx_fail(p, "expected a count");
		count = p->token.bits;
		ptx_advance(p);
		if (ptx_expect(p, ">"))
			return p->result;
	}
	struct ptx_symbol *symbol = ptx_declare(p, p->scope, &name, kind);
	if (!symbol)
		return p->result;
	symbol->type = shape->type;
	symbol->count = count;
	/* A lone byte lives in a row of 16-bit values: nothing computes with bytes. */
	symbol->bytes = ptx_types[shape->type].bytes == 1 ? 2 : ptx_types[shape->type].bytes;
	if (kind == PTX_SYMBOL_REGISTER)
		symbol->row = ptx_new_row(p->function, symbol->bytes);
	return 0;
}

int ptx_parse_registers(struct ptx_parser *p)
{
	struct shape shape;
	int r = parse_shape(p, &shape);

	if (!r && (shape.vector > 1 || ptx_types[shape.type].bytes > 8))
		return ptx_fail_at(p, &shape.token, "registers of this width are not known");
	while (!r) {
		r = parse_register(p, &shape);
		if (r || !ptx_accept(p, ","))
			break;
	}
	return r ? r : ptx_expect(p, ";");
}

int ptx_parse_formal(struct ptx_parser *p, struct ptx_variable **out, struct ptx_token *name)
{
	uint64_t dimensions[DIMENSIONS_MAX];
	bool is_register = ptx_at_dot(p, "reg");
	struct ptx_variable *v;
	struct shape shape;
	unsigned n;

	if (!is_register && !ptx_at_dot(p, "param"))
		return ptx_fail(p, "expected .param, found %.*s", PTX_SHOW(&p->token));
	ptx_advance(p);
	if (parse_shape(p, &shape))
		return p->result;
	*name = p->token;
	if (name->kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected a name, found %.*s", PTX_SHOW(name));
	v = new_variable(p, name, PTX_SPACE_PARAM, &shape);
	if (!v)
		return p->result;
	ptx_advance(p);
	if (parse_dimensions(p, dimensions, &n))
		return p->result;
	if (!array_bytes(&shape, dimensions, n, &v->size) || v->size > PTX_PARAM_BYTES_MAX)
		return ptx_fail_at(p, name, "parameter %s is too large", v->name);
	if (is_register &&
	    (n || shape.vector > 1 || shape.type == PTX_pred || v->size > 8 || v->size < 2))
		return ptx_fail_at(p, name, "parameter %s cannot be a register", v->name);
	if (!v->size && !n)
		return ptx_fail_at(p, name, "parameter %s cannot be a predicate", v->name);
	v->is_register = is_register;
	*out = v;
	return 0;
}
