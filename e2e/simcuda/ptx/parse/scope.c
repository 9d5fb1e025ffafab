/* Names: scopes nest as braces do. A family of registers, `.reg .b32 %r<1000>`, costs nothing until
 * its members are used. */
#include "simcuda/ptx/parse/parse.h"

#include "simcuda/ptx/execute/warp.h"

#include <stdlib.h>

struct ptx_scope *ptx_scope_push(struct ptx_parser *p)
{
	struct ptx_scope *scope;

	if (p->scope && p->scope->depth == PTX_SCOPES_MAX) {
		ptx_fail(p, "braces are nested too deep");
		return NULL;
	}
	scope = calloc(1, sizeof(*scope));
	if (!scope) {
		ptx_no_memory(p);
		return NULL;
	}
	scope->parent = p->scope;
	scope->depth = p->scope ? p->scope->depth + 1 : 0;
	scope->next = p->function_scopes;
	p->function_scopes = scope;
	p->scope = scope;
	return scope;
}

/* The scope stays until the function's end: pending labels are looked up from it. */
void ptx_scope_pop(struct ptx_parser *p)
{
	p->scope = p->scope->parent;
}

void ptx_scopes_free(struct ptx_scope *scopes)
{
	while (scopes) {
		struct ptx_scope *next = scopes->next;
		HASH_CLEAR(hh, scopes->symbols);
		free(scopes);
		scopes = next;
	}
}

static struct ptx_symbol *find(struct ptx_scope *scope, const char *name, size_t len)
{
	struct ptx_symbol *symbol;

	HASH_FIND(hh, scope->symbols, name, len, symbol);
	return symbol;
}

struct ptx_symbol *ptx_declare(struct ptx_parser *p, struct ptx_scope *scope,
			       const struct ptx_token *name, enum ptx_symbol_kind kind)
{
	if (find(scope, name->text, name->len)) {
		ptx_fail_at(p, name, "%.*s is declared twice", PTX_SHOW(name));
		return NULL;
	}
	struct ptx_symbol *symbol =
		ptx_arena_take(scope == p->module_scope ? &p->names : &p->local, sizeof(*symbol));
	if (!symbol) {
		ptx_no_memory(p);
		return NULL;
	}
	symbol->name = name->text;
	symbol->kind = kind;
	HASH_ADD_KEYPTR(hh, scope->symbols, symbol->name, name->len, symbol);
	return symbol;
}

uint32_t ptx_new_row(struct ptx_function *function, uint32_t bytes)
{
	uint32_t at = function->register_bytes;
	uint32_t size = bytes ? bytes * PTX_LANES : sizeof(uint32_t);

	/* Vectors of 64 bytes; words of predicates lie beside each other. */
	if (bytes)
		at = (at + 63) / 64 * 64;
	function->register_bytes = at + size;
	return at | PTX_REGISTERS;
}

/* %r17 of a family %r<100>. */
static struct ptx_symbol *find_member(struct ptx_parser *p, struct ptx_scope *scope,
				      const struct ptx_token *name)
{
	size_t prefix = name->len;
	uint64_t index = 0, power = 1;

	while (prefix && name->text[prefix - 1] >= '0' && name->text[prefix - 1] <= '9' &&
	       name->len - prefix < 10) {
		prefix--;
		index += power * (uint64_t)(name->text[prefix] - '0');
		power *= 10;
	}
	/* The family's name may itself end in digits: %r1<3> has %r10, %r11 and %r12. */
	for (; prefix < name->len; prefix++) {
		struct ptx_symbol *family = find(scope, name->text, prefix);
		bool canonical = name->text[prefix] != '0' || prefix + 1 == name->len;
		if (family && family->kind == PTX_SYMBOL_FAMILY && canonical &&
		    index < family->count) {
			struct ptx_symbol *member =
				ptx_declare(p, scope, name, PTX_SYMBOL_REGISTER);
			if (!member)
				return NULL;
			member->type = family->type;
			member->bytes = family->bytes;
			member->row = ptx_new_row(p->function, member->bytes);
			return member;
		}
		power /= 10;
		index -= power * (uint64_t)(name->text[prefix] - '0');
	}
	return NULL;
}

struct ptx_symbol *ptx_lookup(struct ptx_parser *p, struct ptx_scope *scope,
			      const struct ptx_token *name)
{
	for (; scope; scope = scope->parent) {
		struct ptx_symbol *symbol = find(scope, name->text, name->len);
		if (!symbol && scope != p->module_scope)
			symbol = find_member(p, scope, name);
		if (symbol && symbol->kind != PTX_SYMBOL_FAMILY)
			return symbol;
		if (p->result)
			return NULL;
	}
	return NULL;
}

enum ptx_type ptx_type_find(const struct ptx_token *word)
{
	for (int type = 0; type < PTX_TYPES; type++)
		if (strlen(ptx_types[type].name) == word->len &&
		    memcmp(ptx_types[type].name, word->text, word->len) == 0)
			return type;
	return PTX_TYPES;
}

const struct ptx_type_info ptx_types[PTX_TYPES] = {
#define TYPE(name, bytes, class) [PTX_##name] = {#name, bytes, PTX_##class},
#include "simcuda/ptx/program/types.def"
#undef TYPE
};
