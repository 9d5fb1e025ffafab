/* The intermediate representation of a PTX module.
 *
 * A module keeps its text, and each function knows its part of it. Functions outside the rewritten
 * copies are printed byte for byte. A body is parsed only when a caller asks for it (parse.h), so
 * an unreadable function affects no other.
 *
 * A body is a list of blocks in the order of the text, and a block is a list of instructions. A
 * block ends at bra, brx, ret, exit or trap, guarded or not. Otherwise control falls through to the
 * next block of the list. cfg.h computes edges; the IR does not store them.
 *
 * The parser removes scopes: it hoists names out of braces and renames duplicates. So any block may
 * branch to any other.
 *
 * All strings are interned (intern.h): equal names have equal pointers. Names, mnemonics and
 * operands are read-only. Arenas own everything; nothing is freed alone. */
#pragma once

#include "syntax/arena.h"
#include "syntax/diag.h"
#include "syntax/intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
	const char *start;
	size_t len;
};

enum register_class {
	CLASS_PREDICATE,
	CLASS_INTEGER, /* .uN, .sN, .bN */
	CLASS_FLOAT,
	CLASS_PACKED, /* .f16x2, .bf16x2 ... */
	CLASS_OPAQUE, /* .texref, .samplerref, .surfref */
};

/* types.def */
enum type_id {
	TYPE_NONE, /* unknown, or no type */
#define TYPE(name, bits, register_class) TYPE_##name,
#include "syntax/types.def"
#undef TYPE
	TYPE_COUNT,
};

struct type {
	const char *name; /* "u32" */
	unsigned bits;    /* 1 for pred */
	enum register_class register_class;
};

extern const struct type types[TYPE_COUNT];
/* The type named @name, without its dot; TYPE_NONE: there is none. */
enum type_id type_find(const char *name);

enum space {
	SPACE_NONE,
	SPACE_REG,
	SPACE_PARAM,
	SPACE_SHARED,
	SPACE_LOCAL,
	SPACE_GLOBAL,
	SPACE_CONST,
	SPACE_TEX,
};
extern const char *const space_names[];

/* What an instruction does, as far as passes that change control flow care; see opcodes.def. */
enum opcode_class {
	OP_UNKNOWN, /* not in the table: may read and write its registers and have any other effect
		     */
	OP_PLAIN,   /* computes with registers only */
	OP_MEMORY,  /* reads or writes memory, textures and surfaces included */
	OP_ATOMIC,  /* reads and writes memory atomically */
	OP_FENCE,   /* orders memory */
	OP_HINT,    /* has no result: prefetch, nanosleep, pmevent, brkpt (a debugger goes on) */
	OP_BRANCH,  /* bra */
	OP_TABLE,   /* brx.idx */
	OP_CALL,    /* returns to the next instruction */
	OP_EXIT,    /* ret, exit */
	OP_TRAP,    /* ends the kernel with an error */
	OP_BARRIER, /* waits for threads of the block */
	OP_WARP, /* waits for or communicates with threads of the warp: shfl, vote, mma, bar.warp */
	OP_ASYNC,     /* asynchronous work: cp.async, mbarrier, wgmma, tcgen05 */
	OP_CLUSTER,   /* accesses other blocks of the cluster */
	OP_GRID,      /* depends on other grids: griddepcontrol */
	OP_STACK,     /* changes the stack: alloca */
	OP_REGISTERS, /* changes the number of registers of a thread: setmaxnreg */
	OP_DIRECTIVE, /* .loc, .pragma: kept in place, no effect */
};

enum opcode_flags {
	OP_WRITES_0 = 1,  /* operand 0 is written; registers in addresses are always only read */
	OP_UPDATES_0 = 2, /* operand 0 is read and written */
	OP_READS_CARRY = 4,
	OP_WRITES_CARRY = 8,
};

/* A row of opcodes.def: applies to @name if the modifier @with occurs; "" matches always. */
struct opcode {
	const char *name, *with;
	enum opcode_class op_class;
	unsigned flags;
};

#define MODIFIER_MAX 24

/* The first word of an instruction, split at its dots; one object per spelling in a module. */
struct mnemonic {
	const char *text;             /* "ld.global.nc.v2.f32" */
	const char *name;             /* "ld" */
	const char *const *modifiers; /* "global", "nc", "v2", "f32", NULL */
	enum type_id first_type;      /* among the modifiers; TYPE_NONE: there is none */
	enum opcode_class op_class;
	unsigned flags;
};
bool mnemonic_has(const struct mnemonic *mnemonic, const char *modifier);
/* Whether @names, which end with a NULL, contain @name; the macro brings the NULL. */
bool name_in(const char *name, const char *const *names);
#define name_is(name, ...) name_in(name, (const char *const[]){__VA_ARGS__, NULL})

/* A register. A vector (.v2, .v4) is one register; an operand may name a part of it. */
struct reg {
	const char *name;
	enum type_id type;
	unsigned vector;  /* 1, 2, 4 */
	unsigned id;      /* 0 .. function->reg_count - 1 */
	bool in_group;    /* declared by .reg .b32 %r<N>, which is printed as one declaration */
	struct reg *next; /* of the function */
};

/* A parameter or a variable in memory. Sizes are in bytes. */
struct variable {
	const char *name;
	enum space space;
	enum type_id type;
	unsigned vector;
	unsigned align; /* 0: the type's own */
	uint64_t size;  /* 0: unknown (extern ... []) */
	bool of_module; /* declared outside all functions */
	bool of_body;   /* declared inside a function's braces */
	bool is_initialized;
	const char *linkage; /* of_module: ".visible", ".extern", ".weak", ".common", "" */
	const char *before;  /* text before the name ... */
	const char *after;   /* ... and behind it, up to the comma or semicolon */
	struct position at;
	bool is_stored;        /* detach.c: some instruction may write it */
	struct symbol *symbol; /* detach.h: how a detached kernel reaches it */
	struct variable *next;
};
/* Alignment of its address in bytes. */
unsigned variable_align(const struct variable *variable);

struct block;
struct operand;

/* `name: .branchtargets A, B;` */
struct table {
	const char *name;
	struct block **targets;
	size_t target_count;
	struct table *next;
};

/* A declaration that is printed as it was: .callprototype, register groups. */
struct declaration {
	const char *text; /* printed between tab and newline */
	struct declaration *next;
};

enum operand_kind {
	OPERAND_NONE,
	OPERAND_REGISTER,  /* reg, perhaps with suffix ".x" */
	OPERAND_SPECIAL,   /* text: "%tid.x", "WARP_SZ" */
	OPERAND_IMMEDIATE, /* text: as written; value if it is an integer */
	OPERAND_VARIABLE,  /* variable: of the function or the module, its parameters */
	OPERAND_SYMBOL,    /* text: a function, a call prototype, a sink "_" */
	OPERAND_BLOCK,     /* block: where a branch goes */
	OPERAND_TABLE,     /* table */
	/* Operands with items, up to the last kind; see operand_items(). */
	OPERAND_ADDRESS, /* [items]: one, or several with commas */
	OPERAND_VECTOR,  /* {items} */
	OPERAND_LIST,    /* (items), of a call */
	OPERAND_PAIR,    /* item | item */
};

struct operand {
	enum operand_kind kind;
	char sign; /* '!' or '-' in front of a register, or 0 */
	union {
		struct reg *reg;
		struct variable *variable;
		struct block *block;
		struct table *table;
		const char *text;
		struct operand *items;
	};
	union {
		uint64_t value;    /* IMMEDIATE: of an integer */
		size_t item_count; /* ADDRESS, VECTOR, LIST, PAIR */
	};
	const char *suffix; /* printed right behind: ".x", "+4", "+-8"; or NULL */
};

/* The number of operands inside @operand; 0 unless it is an address, vector, list or pair. */
static inline size_t operand_items(const struct operand *operand)
{
	return operand->kind >= OPERAND_ADDRESS ? operand->item_count : 0;
}

struct instruction {
	const struct mnemonic *mnemonic;
	struct reg *guard; /* predicate that enables the instruction, or NULL */
	bool guard_negated;
	unsigned place; /* warp-pair.c: in the order of the text */
	struct operand *operands;
	size_t operand_count;
	struct position at; /* line 0: inserted by a pass */
	struct block *block;
	struct instruction *prev, *next;
};

/* A basic block. cfg.c and live.c fill in the second part. */
struct block {
	const char *label; /* NULL: none in the text; emit.c derives one from the number */
	unsigned number;   /* unique in the function, never changes */
	struct instruction *first, *last;
	struct block *prev, *next; /* in the order of the text */
	bool placed;               /* false: a branch names it, but its label was not found yet */
	bool is_target;            /* emit.c: some branch names it */
	struct block *same; /* parser: the block of an outer scope that this one stands for */

	unsigned id;    /* 0.. in order of the text */
	unsigned order; /* 0.. in reverse post-order, or CFG_UNREACHED */
	struct block **succs, **preds;
	unsigned succ_count, pred_count;
	struct block *dominator;      /* immediate dominator; NULL for the entry */
	unsigned dom_first, dom_size; /* position and size of its subtree in the dominator tree */
	struct loop *loop;            /* innermost loop that contains it, or NULL */
	const uint64_t *live_in, *live_out; /* bits by live_index (live.h) */
};

/* A directive in a kernel's head: .maxntid 256, 1, 1 */
struct directive {
	const char *name; /* "maxntid" */
	const char *text; /* as written, with the dot */
	uint32_t values[3];
	unsigned value_count;
	struct directive *next;
};

struct function {
	struct module *module;
	struct arena *arena; /* of the body */
	const char *name;
	bool is_kernel;    /* .entry */
	bool has_body;     /* false: a declaration only */
	struct span whole; /* of the module's text: from linkage to closing brace or semicolon */
	struct span body;  /* between the braces */
	struct position at, body_at;
	const char *linkage; /* ".visible", ".weak", "" */
	struct variable *returns;
	struct variable *params;
	struct directive *directives;
	struct callee *callee;     /* effects of calling it (callee.c); NULL: not known yet */
	struct function *detached; /* detach.c: its copy in a kernel's own module, or NULL */
	struct function *next;

	/* Valid once the body has been read. */
	bool is_read;
	struct declaration *declarations, **declarations_end;
	struct reg *regs, **regs_end;
	unsigned reg_count;
	struct reg *carry; /* the carry flag as a register for liveness; never printed */
	struct variable *variables, **variables_end;
	struct table *tables, **tables_end;
	struct block *entry, *last; /* first and last of the list */
	unsigned block_count;
	struct loop *loops;
	unsigned fresh; /* number of the next name that a pass creates */
};

struct module {
	struct arena *arena;
	struct intern names, mnemonics;
	struct diag *diag;
	const char *text;
	size_t len;
	unsigned version_major, version_minor;
	const char *target; /* "sm_90" */
	unsigned address_size;
	struct variable *variables, **variables_end;
	struct function *functions, **functions_end;
	struct scope *scope;       /* names outside of bodies (scope.h) */
	struct callee *any_callee; /* effects of calling any of its functions (callee.c), or NULL */
	struct variable_set *callees_variables; /* variables that called functions may use
						   (save/memory.c), or NULL */
	/* "weir_", with more underscores if names of the text begin like that, also behind a %. */
	const char *prefix;
};

/* The first directive of this name (without the dot), or NULL. */
const struct directive *function_directive(const struct function *function, const char *name);
/* The most threads of a block, by .reqntid or .maxntid; 0: unknown. */
uint32_t function_threads(const struct function *function);

/* Calls @visit for each register of an instruction, guard and carry included. @written and @read
 * may both be true. A write ends the old value's life only if @kills. */
struct register_use {
	struct reg *reg;
	bool read, written, kills;
};
typedef void register_visit(void *data, struct register_use use);
void instruction_registers(const struct function *function, const struct instruction *instruction,
			   register_visit *visit, void *data);

/* All instructions of a function, in the order of the text. NULL: no more. */
struct instruction *instruction_first(const struct function *function);
struct instruction *instruction_next(const struct instruction *instruction);
#define for_each_instruction(i, function) \
	for (struct instruction *i = instruction_first(function); i; i = instruction_next(i))

/* Whether control can leave the block at this instruction; whether it can reach the next block. */
bool instruction_ends_block(const struct instruction *instruction);
bool block_falls_through(const struct block *block);
/* Whether a branch has the operands that cfg.c relies on. True for other instructions. */
bool instruction_has_target(const struct instruction *instruction);
