/* The parser turns tokens into variables, functions and statements in one pass. Names must be
 * declared before use, except labels and names in initialisers. The first error sticks. */
#pragma once

#include "simcuda/ptx/parse/lex.h"
#include "simcuda/ptx/program/program.h"

#define PTX_SCOPES_MAX    64
#define PTX_MODIFIERS_MAX 16
#define PTX_VECTOR_MAX    8   /* elements, but for */
#define PTX_MATRIX_MAX    128 /* those of a matrix */

enum ptx_symbol_kind {
	PTX_SYMBOL_REGISTER, /* row, bytes */
	PTX_SYMBOL_FAMILY,   /* %r<count>: its registers get rows when they are used */
	PTX_SYMBOL_SPECIAL,  /* row of PTX_SPECIALS, bytes */
	PTX_SYMBOL_VARIABLE,
	PTX_SYMBOL_FUNCTION,
	PTX_SYMBOL_LABEL, /* pc */
	PTX_SYMBOL_TARGETS,
	PTX_SYMBOL_PROTOTYPE,
};

struct ptx_symbol {
	const char *name; /* in the text: not terminated */
	enum ptx_symbol_kind kind;
	enum ptx_type type;
	uint32_t row, bytes; /* bytes of a lane; 0: predicate */
	uint64_t count;
	union {
		struct ptx_variable *variable;
		struct ptx_function *function;
		uint32_t pc;
		struct ptx_target_list *list;
	};
	UT_hash_handle hh;
};

struct ptx_scope {
	struct ptx_scope *parent;
	struct ptx_symbol *symbols;
	struct ptx_scope *next; /* all of a function, to free them */
	unsigned depth;
};

/* A name that becomes a pc at the end of the function. */
struct ptx_pending {
	struct ptx_token name;
	struct ptx_scope *scope;
	size_t insn;  /* its imm, or its targets */
	bool is_list; /* of labels */
	struct ptx_pending *next;
};

struct ptx_target_list {
	uint32_t n;
	struct ptx_target_name {
		struct ptx_token name;
		struct ptx_target_name *next;
	} * names, **last;
	struct ptx_scope *scope;
};

/* A value of an initialiser: bits, or an address that is resolved later. */
struct ptx_initial {
	struct ptx_variable *variable;
	uint64_t offset;
	uint32_t bytes;
	uint64_t bits;         /* of a name: what is added */
	struct ptx_token name; /* len 0: none */
	uint64_t mask;         /* of a name: these bits, moved down */
	struct ptx_initial *next;
};

enum ptx_operand_kind {
	PTX_OPERAND_REGISTER, /* symbol: register or special */
	PTX_OPERAND_INTEGER,
	PTX_OPERAND_FLOAT,
	PTX_OPERAND_DOUBLE,
	PTX_OPERAND_VARIABLE, /* symbol, addend */
	PTX_OPERAND_FUNCTION,
	PTX_OPERAND_ADDRESS, /* symbol may be NULL, addend; elements: coordinates */
	PTX_OPERAND_VECTOR,
	PTX_OPERAND_SINK,
	PTX_OPERAND_NAME, /* not declared (yet): token */
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	bool negated; /* !p */
	struct ptx_symbol *symbol;
	uint64_t bits;
	int64_t addend;
	struct ptx_token token;
	struct ptx_operand *also; /* p|q: q */
	struct ptx_operand *elements;
	uint32_t n_elements;
};

struct ptx_statement {
	struct ptx_token opcode;
	struct ptx_token modifiers[PTX_MODIFIERS_MAX];
	uint32_t n_modifiers;
	struct ptx_operand operands[PTX_OPERANDS];
	uint32_t n;
	uint32_t guard;
	bool guard_negated;
	struct ptx_operand pool[4 + 2 * PTX_VECTOR_MAX]; /* second and vector elements */
	uint32_t n_pool;
};

struct ptx_parser {
	struct ptx_lexer lexer;
	struct ptx_token token, next;
	struct ptx_module *module;
	struct ptx_error *error;
	int result;             /* the first failure */
	struct ptx_arena names; /* symbols, pending names and initialisers */
	struct ptx_arena local; /* the same of one function */
	struct ptx_scope *scope, *module_scope, *function_scopes;
	struct ptx_function *function; /* whose body is being parsed */
	struct ptx_pending *pending;
	struct ptx_initial *initials, **last_initial;
	bool version_seen, address_size_seen;
};

/* Reports an error at @token's line. Returns -EINVAL, or the first error's code. */
int ptx_fail_at(struct ptx_parser *p, const struct ptx_token *token, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int ptx_no_memory(struct ptx_parser *p);
#define ptx_fail(p, ...) ptx_fail_at((p), &(p)->token, __VA_ARGS__)
/* For "%.*s". */
#define PTX_SHOW(token) (int)((token)->len < 80 ? (token)->len : 80), (token)->text

/* parse.c */
int ptx_parse_module(struct ptx_parser *p);
void ptx_advance(struct ptx_parser *p);
bool ptx_at_mark(const struct ptx_parser *p, const char *mark);
bool ptx_at_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept(struct ptx_parser *p, const char *mark);
int ptx_expect(struct ptx_parser *p, const char *mark);
void ptx_skip_line(struct ptx_parser *p);
int ptx_skip_braces(struct ptx_parser *p);
int ptx_skip_statement(struct ptx_parser *p);

/* scope.c */
struct ptx_scope *ptx_scope_push(struct ptx_parser *p);
void ptx_scope_pop(struct ptx_parser *p);
void ptx_scopes_free(struct ptx_scope *scopes);
/* NULL and failed: already there, or no memory. */
struct ptx_symbol *ptx_declare(struct ptx_parser *p, struct ptx_scope *scope,
			       const struct ptx_token *name, enum ptx_symbol_kind kind);
/* Looks from @scope outwards and creates registers of a family. NULL: not declared. */
struct ptx_symbol *ptx_lookup(struct ptx_parser *p, struct ptx_scope *scope,
			      const struct ptx_token *name);
/* PTX_TYPES: none. */
enum ptx_type ptx_type_find(const struct ptx_token *word);
/* A new row of the function's frame. */
uint32_t ptx_new_row(struct ptx_function *function, uint32_t bytes);

/* number.c: constant expressions. */
int ptx_parse_integer(struct ptx_parser *p, uint64_t *out);
/* Of a literal or expression, as a value of @type. */
int ptx_parse_constant(struct ptx_parser *p, enum ptx_type type, uint64_t *out);
/* The bits of a literal as @type; false: it does not fit in. */
bool ptx_literal(enum ptx_token_kind kind, uint64_t bits, enum ptx_type type, uint64_t *out);

/* variable.c */
int ptx_parse_variables(struct ptx_parser *p, enum ptx_space space, bool is_extern);
int ptx_parse_registers(struct ptx_parser *p);
/* One parameter, `.param …` or `.reg …`, up to `,` or `)`. */
int ptx_parse_formal(struct ptx_parser *p, struct ptx_variable **out, struct ptx_token *name);

/* initial.c: at the first token of a value of the variable, an array of @n @dimensions. */
int ptx_parse_initials(struct ptx_parser *p, struct ptx_variable *variable, enum ptx_type type,
		       const uint64_t *dimensions, unsigned n);
/* At the =: counts the values of an array whose first dimension is open. */
uint64_t ptx_count_initials(const struct ptx_parser *p);
int ptx_apply_initials(struct ptx_parser *p);

/* label.c: at a name before a colon; and at a function's end, to resolve uses of labels. */
int ptx_parse_label(struct ptx_parser *p);
int ptx_resolve_labels(struct ptx_parser *p);

/* load/function.c */
int ptx_parse_function(struct ptx_parser *p, bool is_kernel, bool is_extern);

/* load/statement.c: an instruction, from its guard to its semicolon. */
int ptx_parse_statement(struct ptx_parser *p);

/* load/layout.c: after the whole text is parsed. */
int ptx_layout(struct ptx_parser *p);
