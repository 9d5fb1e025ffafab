/* What a module of PTX is made of.
 *
 * A module keeps its text; a function knows which part of it is its own, and goes out byte for byte
 * unless somebody changed it. Bodies are read when somebody wants to look at one (parse.h), so an
 * unreadable function costs only itself.
 *
 * A body is a list of blocks in the order of the text, each a list of instructions. A block ends
 * behind whatever may leave it (bra, brx, ret, exit, trap; guarded or not); control that does not
 * leave falls through to the next block of the list. Edges are not stored but computed (cfg.h).
 *
 * Scopes are gone: names declared inside braces are hoisted to the function's top, renamed where
 * two of them would meet. So any block may be entered from any other.
 *
 * All strings are interned (intern.h): names are equal if their pointers are. Names and
 * instructions may be compared, never written to. Everything lives in arenas; nothing is freed one
 * by one.
 */
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
/* TYPE_NONE: @name, without its dot, is no type. */
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

/* What an instruction does that matters to somebody who rewrites control flow; opcodes.def. */
enum opcode_class {
	OP_UNKNOWN, /* not in the table: may read and write its registers, and do anything else */
	OP_PLAIN,   /* computes with registers only */
	OP_MEMORY,  /* reads or writes memory, textures and surfaces included */
	OP_ATOMIC,  /* both at once */
	OP_FENCE,   /* orders memory */
	OP_HINT,    /* has no result: prefetch, nanosleep, pmevent */
	OP_BRANCH,  /* bra */
	OP_TABLE,   /* brx.idx */
	OP_CALL,    /* comes back */
	OP_EXIT,    /* ret, exit */
	OP_TRAP,    /* ends the kernel with an error */
	OP_BARRIER, /* waits for threads of the block */
	OP_WARP,    /* waits for, or talks to, threads of the warp: shfl, vote, mma, bar.warp */
	OP_ASYNC,   /* starts, awaits or names work in flight: cp.async, mbarrier, wgmma, tcgen05 */
	OP_CLUSTER, /* reaches into other blocks of the cluster */
	OP_GRID,    /* depends on what other grids do: griddepcontrol */
	OP_STACK,   /* moves the stack: alloca */
	OP_REGISTERS, /* changes how many registers a thread has: setmaxnreg */
	OP_DIRECTIVE, /* .loc, .pragma: kept in place, does nothing */
};

enum opcode_flags {
	OP_WRITES_0 = 1,  /* operand 0 is written; addresses are always only read */
	OP_UPDATES_0 = 2, /* operand 0 is read and written */
	OP_READS_CARRY = 4,
	OP_WRITES_CARRY = 8,
};

/* A row of opcodes.def: @name with the modifier @with somewhere behind it ("": whatever follows).
 */
struct opcode {
	const char *name, *with;
	enum opcode_class op_class;
	unsigned flags;
};

#define MODIFIER_MAX 24

/* The first word of an instruction, taken apart; one object for each spelling in a module. */
struct mnemonic {
	const char *text;             /* "ld.global.nc.v2.f32" */
	const char *name;             /* "ld" */
	const char *const *modifiers; /* "global", "nc", "v2", "f32" */
	size_t modifier_count;
	enum type_id first_type, last_type; /* of the modifiers; TYPE_NONE: none is a type */
	enum opcode_class op_class;
	unsigned flags;
};
bool mnemonic_has(const struct mnemonic *mnemonic, const char *modifier);

/* A register. Vectors (.v2, .v4) are one register; operands may name a part of it. */
struct reg {
	const char *name;
	enum type_id type;
	unsigned vector;  /* 1, 2, 4 */
	unsigned id;      /* 0 .. function->reg_count - 1 */
	bool in_group;    /* declared by .reg .b32 %r<N>, which is printed as a whole */
	struct reg *next; /* of the function */
};

/* Anything with a name that lies in memory, and parameters. Sizes are in bytes. */
struct variable {
	const char *name;
	enum space space;
	enum type_id type;
	unsigned vector;
	unsigned align; /* 0: the type's own */
	uint64_t size;  /* 0: unknown (extern ... []) */
	bool of_module; /* declared outside of all functions */
	bool of_body;   /* declared between a function's braces */
	bool is_initialized;
	const char *linkage; /* of_module: ".visible", ".extern", ".weak", ".common", "" */
	const char *before;  /* as written: all in front of the name ... */
	const char *after;   /* ... and all behind it, up to the comma or semicolon */
	struct position at;
	bool is_stored;        /* detach.c: somebody may write it */
	struct symbol *symbol; /* detach.h: what becomes of it in a module of a kernel's own */
	struct variable *next;
};
/* Of its address, in bytes. */
unsigned variable_align(const struct variable *variable);

struct block;
struct operand;

/* A list of labels: name: .branchtargets A, B; */
struct table {
	const char *name;
	struct block **targets;
	size_t target_count;
	struct table *next;
};

/* A line of declarations that is kept as written: .callprototype, register groups. */
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
	/* Those with items, from here to the last; see operand_items(). */
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

/* How many operands stand inside @operand: 0 unless it is an address, vector, list or pair. */
static inline size_t operand_items(const struct operand *operand)
{
	return operand->kind >= OPERAND_ADDRESS ? operand->item_count : 0;
}

struct instruction {
	const struct mnemonic *mnemonic;
	struct reg *guard; /* executed only if it is true; or NULL */
	bool guard_negated;
	struct operand *operands;
	size_t operand_count;
	struct position at; /* line 0: made by a pass */
	struct block *block;
	struct instruction *prev, *next;
};

/* A place for code. Fields of the second part belong to cfg.c and live.c. */
struct block {
	const char *label; /* NULL: none in the text; one is made of the number if it is needed */
	unsigned number;   /* different for each block of a function, and stays so */
	struct instruction *first, *last;
	struct block *prev, *next; /* order of the text */
	bool placed;               /* false: named by a branch, but its label was not found yet */
	bool is_target;            /* emit.c: somebody branches here */
	struct block *same;        /* while reading: it turned out to be that one */

	unsigned id;    /* 0.. in order of the text */
	unsigned order; /* 0.. in reverse post-order; CFG_UNREACHED */
	struct block **succs, **preds;
	unsigned succ_count, pred_count;
	struct block *dominator;      /* the immediate one; the entry's is NULL */
	unsigned dom_first, dom_size; /* place and size of its subtree in the dominator tree */
	struct loop *loop;            /* the innermost that it lies in, or NULL */
	const uint64_t *live_in, *live_out; /* bits by live_index (live.h) */
};

/* .maxntid 256, 1, 1 and its like, of a kernel's head. */
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
	bool has_body;     /* not only a declaration */
	struct span whole; /* of the module's text: from linkage to closing brace or semicolon */
	struct span body;  /* between the braces */
	struct position at, body_at;
	const char *linkage; /* ".visible", ".weak", "" */
	struct variable *returns;
	struct variable *params;
	struct directive *directives;
	struct callee *callee;     /* what calling it does, or NULL: not known yet (callee.c) */
	struct function *detached; /* detach.c: as it goes into the kernel's own module, or NULL */
	struct function *next;

	/* The rest is there once the body has been read. */
	bool is_read;
	struct declaration *declarations, **declarations_end;
	struct reg *regs, **regs_end;
	unsigned reg_count;
	struct reg *carry; /* the carry flag, as liveness sees it; never printed */
	struct variable *variables, **variables_end;
	struct table *tables, **tables_end;
	struct block *entry, *last; /* first and last of the list */
	unsigned block_count;
	struct loop *loops;
	unsigned fresh; /* number for the next name that a pass makes */
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
	struct scope *scope;       /* names outside bodies (scope.h) */
	struct callee *any_callee; /* what calling some function of it does, or NULL (callee.c) */
	struct variable_set *callees_variables; /* that it may use, or NULL (save.h) */
	/* "weir_" or with more of the last: no name of the text begins so, nor so behind a %. */
	const char *prefix;
	/* What edits return once something has failed (edit.h). */
	struct reg broken_reg;
	struct variable broken_variable;
	struct block broken_block;
	struct table broken_table;
};

/* First directive of this name, without dot, or NULL. */
const struct directive *function_directive(const struct function *function, const char *name);

/* All registers of an instruction, guard and carry included, one call each. @written and @read may
 * both be true. A write kills the old value only if @kills. */
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

/* Can control leave the block at this instruction, and can it also go on to the next? */
bool instruction_ends_block(const struct instruction *instruction);
bool block_falls_through(const struct block *block);
