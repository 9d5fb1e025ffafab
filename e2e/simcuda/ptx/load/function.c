/* Kernels and device functions: heads, bodies, labels. */
#include "simcuda/ptx/parse/parse.h"

#include "simcuda/ptx/decode/decode.h"
#include "simcuda/ptx/execute/executors.h"

#define PARAMS_MAX 4096

static struct ptx_function *new_function(struct ptx_parser *p, const struct ptx_token *name)
{
	struct ptx_function *f = ptx_arena_take(&p->module->arena, sizeof(*f));

	if (!f || !(f->name = ptx_arena_string(&p->module->arena, name->text, name->len))) {
		ptx_no_memory(p);
		return NULL;
	}
	f->module = p->module;
	f->line = name->line;
	f->max_threads = 1024;
	return f;
}

/* The function of this name, declared before or now. */
static struct ptx_function *declare_function(struct ptx_parser *p, const struct ptx_token *name,
					     bool is_kernel)
{
	struct ptx_symbol *symbol = ptx_lookup(p, p->module_scope, name);

	if (symbol && (symbol->kind != PTX_SYMBOL_FUNCTION || symbol->function->defined ||
		       symbol->function->is_kernel != is_kernel)) {
		ptx_fail_at(p, name, "%.*s is declared twice", PTX_SHOW(name));
		return NULL;
	}
	if (symbol)
		return symbol->function;
	symbol = ptx_declare(p, p->module_scope, name, PTX_SYMBOL_FUNCTION);
	if (!symbol)
		return NULL;
	symbol->function = new_function(p, name);
	if (!symbol->function)
		return NULL;
	symbol->function->is_kernel = is_kernel;
	HASH_ADD_KEYPTR(hh, p->module->functions, symbol->function->name, name->len,
			symbol->function);
	return symbol->function;
}

static uint32_t align_up(uint32_t value, uint64_t align)
{
	return (uint32_t)((value + align - 1) / align * align);
}

/* A kernel's parameters lie behind each other; a function's in its frame, or in a row. */
static int place_formal(struct ptx_parser *p, struct ptx_function *f, struct ptx_variable *v)
{
	if (v->is_register) {
		if (f->is_kernel)
			return ptx_fail(p, "a kernel has no parameters in registers");
		return 0;
	}
	uint32_t *end = f->is_kernel ? &f->param_bytes : &f->frame_bytes;
	v->offset = align_up(*end, v->align);
	*end = (uint32_t)(v->offset + v->size);
	if (f->is_kernel && f->param_bytes > PTX_PARAM_BYTES_MAX)
		return ptx_fail(p, "the parameters of %s take over %d bytes", f->name,
				PTX_PARAM_BYTES_MAX);
	if (!f->is_kernel)
		v->space = PTX_SPACE_LOCAL;
	return 0;
}

static int declare_formal(struct ptx_parser *p, struct ptx_variable *v,
			  const struct ptx_token *name)
{
	if (ptx_token_is(name, PTX_TOKEN_WORD, "_"))
		return 0;
	struct ptx_symbol *symbol = ptx_declare(
		p, p->scope, name, v->is_register ? PTX_SYMBOL_REGISTER : PTX_SYMBOL_VARIABLE);
	if (!symbol)
		return p->result;
	if (v->is_register) {
		symbol->bytes = (uint32_t)v->size;
		symbol->row = ptx_new_row(p->function, symbol->bytes);
		v->offset = symbol->row;
	} else {
		symbol->variable = v;
	}
	return 0;
}

/* ( … ), at the opening parenthesis or at none. */
static int parse_formals(struct ptx_parser *p, struct ptx_function *f, struct ptx_variable ***out,
			 uint32_t *n)
{
	uint32_t room = 0;

	*n = 0;
	*out = NULL;
	if (!ptx_accept(p, "("))
		return p->result;
	while (!ptx_accept(p, ")")) {
		struct ptx_token name;
		if (*n == PARAMS_MAX)
			return ptx_fail(p, "%s has too many parameters", f->name);
		if (*n == room) {
			room = room ? 2 * room : 8;
			struct ptx_variable **more = ptx_arena_take(
				&p->module->arena, room * sizeof(struct ptx_variable *));
			if (!more)
				return ptx_no_memory(p);
			if (*n)
				memcpy(more, *out, *n * sizeof(struct ptx_variable *));
			*out = more;
		}
		struct ptx_variable **formal = &(*out)[*n];
		if (ptx_parse_formal(p, formal, &name) || place_formal(p, f, *formal) ||
		    declare_formal(p, *formal, &name))
			return p->result;
		++*n;
		if (!ptx_accept(p, ",") && !ptx_at_mark(p, ")"))
			return ptx_expect(p, ")");
	}
	return p->result;
}

/* x, y, z: as many as are there. */
static int parse_dimensions(struct ptx_parser *p, struct ptx_dim *out)
{
	uint32_t *at[] = {&out->x, &out->y, &out->z};

	*out = (struct ptx_dim){1, 1, 1};
	for (size_t k = 0; k < 3; k++) {
		if (p->token.kind != PTX_TOKEN_INTEGER || p->token.bits == 0 ||
		    p->token.bits > 65535)
			return ptx_fail(p, "expected a number of threads, found %.*s",
					PTX_SHOW(&p->token));
		*at[k] = (uint32_t)p->token.bits;
		ptx_advance(p);
		if (k == 2 || !ptx_accept(p, ","))
			break;
	}
	return p->result;
}

/* Directives between head and body that do not change the result, each with a number. */
static const char *const hints[] = {
	"minnctapersm", "maxnctapersm",    "maxnreg",      "maxclusterrank",
	"noreturn",     "explicitcluster", "abi_preserve", "abi_preserve_control",
	"retain",
};

static int skip_hint(struct ptx_parser *p)
{
	for (size_t k = 0; k < sizeof(hints) / sizeof(hints[0]); k++) {
		if (!ptx_at_dot(p, hints[k]))
			continue;
		ptx_advance(p);
		if (p->token.kind == PTX_TOKEN_INTEGER)
			ptx_advance(p);
		return p->result;
	}
	return ptx_fail(p, "unknown directive .%.*s", PTX_SHOW(&p->token));
}

static int parse_attributes(struct ptx_parser *p, struct ptx_function *f)
{
	while (!p->result && p->token.kind == PTX_TOKEN_DOT) {
		if (ptx_at_dot(p, "maxntid") || ptx_at_dot(p, "reqntid")) {
			struct ptx_dim *dim =
				ptx_at_dot(p, "maxntid") ? &f->max_block : &f->required_block;
			ptx_advance(p);
			if (parse_dimensions(p, dim))
				return p->result;
			uint64_t threads = (uint64_t)dim->x * dim->y * dim->z;
			f->max_threads = threads < 1024 ? (uint32_t)threads : 1024;
		} else if (ptx_at_dot(p, "reqnctapercluster")) {
			struct ptx_dim cluster;
			ptx_advance(p);
			if (parse_dimensions(p, &cluster))
				return p->result;
			if ((uint64_t)cluster.x * cluster.y * cluster.z != 1)
				return ptx_fail(p, "clusters of blocks are not known");
		} else if (ptx_at_dot(p, "pragma")) {
			ptx_skip_statement(p);
		} else {
			skip_hint(p);
		}
	}
	return p->result;
}

static const struct {
	const char *word;
	enum ptx_space space;
} spaces[] = {
	{"local", PTX_SPACE_LOCAL},   {"param", PTX_SPACE_PARAM}, {"shared", PTX_SPACE_SHARED},
	{"global", PTX_SPACE_GLOBAL}, {"const", PTX_SPACE_CONST},
};

static int parse_body_directive(struct ptx_parser *p)
{
	if (ptx_at_dot(p, "loc") || ptx_at_dot(p, "file")) {
		ptx_skip_line(p);
		return p->result;
	}
	if (ptx_at_dot(p, "pragma"))
		return ptx_skip_statement(p);
	if (ptx_at_dot(p, "reg")) {
		ptx_advance(p);
		return ptx_parse_registers(p);
	}
	bool is_extern = ptx_at_dot(p, "extern");
	if (is_extern)
		ptx_advance(p);
	for (size_t k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
		if (!ptx_at_dot(p, spaces[k].word))
			continue;
		ptx_advance(p);
		return ptx_parse_variables(p, spaces[k].space, is_extern);
	}
	return ptx_fail(p, "unknown directive .%.*s", PTX_SHOW(&p->token));
}

/* Variables of sibling scopes share their place in the frame. */
static int parse_block(struct ptx_parser *p)
{
	uint32_t frame = p->function->frame_bytes;

	if (ptx_expect(p, "{") || !ptx_scope_push(p))
		return p->result;
	while (!p->result && p->token.kind != PTX_TOKEN_END && !ptx_at_mark(p, "}")) {
		if (ptx_at_mark(p, "{"))
			parse_block(p);
		else if (ptx_accept(p, ";"))
			continue;
		else if (p->token.kind == PTX_TOKEN_DOT)
			parse_body_directive(p);
		else if (p->token.kind == PTX_TOKEN_WORD &&
			 ptx_token_is(&p->next, PTX_TOKEN_MARK, ":"))
			ptx_parse_label(p);
		else
			ptx_parse_statement(p);
	}
	ptx_scope_pop(p);
	if (p->function->frame_bytes > p->function->frame_max)
		p->function->frame_max = p->function->frame_bytes;
	p->function->frame_bytes = frame;
	return ptx_expect(p, "}");
}

static int parse_body(struct ptx_parser *p, struct ptx_function *f)
{
	struct ptx_insn end = {.exec = ptx_exec_ret, .line = p->token.line};

	f->defined = true;
	f->entry = (uint32_t)p->module->n_code;
	f->frame_max = f->frame_bytes;
	if (parse_block(p))
		return p->result;
	/* Code that falls off the end returns. */
	if (ptx_emit(p, NULL, &end))
		return p->result;
	f->end = (uint32_t)p->module->n_code;
	f->frame_bytes = align_up(f->frame_max, 16);
	f->register_bytes = align_up(f->register_bytes, 64);
	if (f->register_bytes > PTX_REGISTER_BYTES_MAX)
		return ptx_fail(p, "%s uses too many registers", f->name);
	if (f->is_kernel) {
		*p->module->last_kernel = f;
		p->module->last_kernel = &f->next_kernel;
	}
	return ptx_resolve_labels(p);
}

static void end_function(struct ptx_parser *p)
{
	p->scope = p->module_scope;
	ptx_scopes_free(p->function_scopes);
	p->function_scopes = NULL;
	ptx_arena_deinit(&p->local);
	p->pending = NULL;
	p->function = NULL;
}

/* Results stand before the name, which is not known yet. They are parsed into a temporary function.
 */
static int parse_head(struct ptx_parser *p, struct ptx_function *results, bool is_kernel,
		      struct ptx_function **out)
{
	uint32_t n;

	p->function = results;
	if (!is_kernel && parse_formals(p, results, &results->results, &n))
		return p->result;
	results->n_results = is_kernel ? 0 : n;
	struct ptx_token name = p->token;
	if (name.kind != PTX_TOKEN_WORD)
		return ptx_fail(p, "expected a name, found %.*s", PTX_SHOW(&name));
	ptx_advance(p);
	struct ptx_function *f = declare_function(p, &name, is_kernel);
	if (!f)
		return p->result;
	p->function = f;
	f->results = results->results;
	f->n_results = results->n_results;
	f->frame_bytes = results->frame_bytes;
	f->register_bytes = results->register_bytes;
	f->param_bytes = 0;
	*out = f;
	if (parse_formals(p, f, &f->params, &f->n_params))
		return p->result;
	return parse_attributes(p, f);
}

int ptx_parse_function(struct ptx_parser *p, bool is_kernel, bool is_extern)
{
	struct ptx_function results = {.name = "a function", .module = p->module}, *f = NULL;

	if (!ptx_scope_push(p))
		return p->result;
	parse_head(p, &results, is_kernel, &f);
	if (f && !p->result && !ptx_accept(p, ";")) {
		if (is_extern)
			ptx_fail(p, "extern %s has a body", f->name);
		else
			parse_body(p, f);
	}
	if (p->function == &results)
		p->function = NULL;
	end_function(p);
	return p->result;
}
