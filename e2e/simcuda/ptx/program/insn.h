/* A compiled instruction. Operands are rows: a warp's register is an array of 32 values, one a
 * lane, so an instruction is one loop over the active lanes. A predicate is one word with a bit a
 * lane. A row reference is an offset from one of four bases, with the base in the two low bits.
 * Immediate operands are rows of the function's constants; special registers are rows of the warp.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_LANES    32u
#define PTX_OPERANDS 12

struct ptx_function;
struct ptx_insn;
struct ptx_warp;

enum ptx_type {
#define TYPE(name, bytes, class) PTX_##name,
#include "simcuda/ptx/program/types.def"
#undef TYPE
	PTX_TYPES
};

enum ptx_type_class { PTX_PREDICATE, PTX_BITS, PTX_UNSIGNED, PTX_SIGNED, PTX_FLOAT };

struct ptx_type_info {
	const char *name;
	uint8_t bytes;
	enum ptx_type_class class;
};
extern const struct ptx_type_info ptx_types[PTX_TYPES];

enum ptx_space {
	PTX_SPACE_GENERIC,
	PTX_SPACE_GLOBAL,
	PTX_SPACE_CONST,
	PTX_SPACE_SHARED,
	PTX_SPACE_LOCAL,
	PTX_SPACE_PARAM, /* a kernel's parameters; a function's lie in its frame: LOCAL */
};

/* Which base a row is counted from. */
enum ptx_base { PTX_REGISTERS, PTX_CONSTANTS, PTX_SPECIALS, PTX_SCRATCH };

#define PTX_NO_ROW UINT32_MAX

/* The effect of an instruction on the control flow. */
enum ptx_flow {
	PTX_NEXT,    /* on to the next instruction */
	PTX_JUMPED,  /* the whole group goes on at warp->pc */
	PTX_REGROUP, /* lanes diverged or wait; their own pcs are valid */
	PTX_FAULT,   /* warp->error says what */
};

typedef enum ptx_flow ptx_exec(struct ptx_warp *warp, const struct ptx_insn *insn, uint32_t mask);
ptx_exec ptx_exec_bra;
/* Compares all lanes; results of inactive lanes are ignored. */
typedef uint32_t ptx_compare(const void *a, const void *b);

enum ptx_round { PTX_RN, PTX_RZ, PTX_RM, PTX_RP, PTX_RNA };

/* Addressing and size of a memory instruction, atomics included. */
struct ptx_access {
	uint8_t space;        /* enum ptx_space */
	uint8_t bytes;        /* of one element */
	uint8_t count;        /* elements: 1, 2, 4, 8 */
	uint8_t row_bytes;    /* of the registers */
	uint8_t address_wide; /* the address register has 64 bits */
	uint8_t sign;         /* extend the sign */
	uint8_t order;        /* enum ptx_order */
	uint8_t in_frame;     /* local: imm counts from the lane's frame */
	uint8_t writes;       /* not a mere load */
	uint8_t variant;      /* of an mbarrier: what is done */
};
enum ptx_order { PTX_WEAK, PTX_ACQUIRE = 1, PTX_RELEASE = 2, PTX_ACQ_REL = 3 };

/* Modifiers of a floating-point instruction that its plain form does not know. */
struct ptx_float_mode {
	uint8_t round; /* enum ptx_round */
	uint8_t ftz, sat;
	uint8_t type;    /* enum ptx_type, of destination and sources */
	uint8_t sources; /* rows behind the destination */
};

struct ptx_convert {
	uint8_t to, from;           /* enum ptx_type */
	uint8_t to_row, from_row;   /* bytes of the registers */
	uint8_t round, to_integral; /* enum ptx_round; round to an integral value */
	uint8_t ftz, sat, relu;
};

struct ptx_sync {
	uint8_t kind;    /* equal for the lanes of one operation */
	uint8_t variant; /* of the kind: shfl's mode, vote's, a barrier's reduction */
	uint8_t count;   /* a barrier has a thread count */
	uint8_t negated; /* the predicate operand */
};

struct ptx_logic {
	uint8_t combine; /* enum ptx_combine: with a third predicate */
	uint8_t negated; /* that predicate */
	uint8_t ftz;     /* flush what is compared */
	uint8_t result;  /* set: enum ptx_set_result */
	uint8_t pair;    /* two halves are compared */
};
/* The value of true; for two halves, of each half. */
enum ptx_set_result { PTX_ALL_ONES, PTX_ONE_F32, PTX_ONE_F16, PTX_ONE_BF16 };
enum ptx_combine { PTX_ALONE, PTX_AND, PTX_OR, PTX_XOR };

struct ptx_insn {
	ptx_exec *exec;
	union {
		ptx_exec *inner; /* the plain form of a modified floating-point instruction */
		ptx_compare *compare;
		const struct ptx_call *call;
		const struct ptx_targets *targets;
		const struct ptx_matrix *matrix;
		const char *name;
	};
	struct ptx_function *function;
	int64_t imm; /* address: what is added to the row. bra: target pc. Else as the exec says. */
	uint32_t op[PTX_OPERANDS];
	uint32_t guard; /* PTX_NO_ROW: none */
	int32_t line;
	bool guard_negated;
	union {
		struct ptx_access access;
		struct ptx_float_mode mode;
		struct ptx_convert convert;
		struct ptx_sync sync;
		struct ptx_logic logic;
	};
};

/* One row of the table of plain instructions: the result depends only on source rows of a fixed
 * width. The name has '_' where PTX has '.'. */
struct ptx_plain {
	const char *name;
	ptx_exec *exec;
	uint8_t n;
	uint8_t bytes[5]; /* of each operand; 0: predicate */
};

struct ptx_plain_table {
	const struct ptx_plain *rows;
	size_t n;
};
extern const struct ptx_plain_table ptx_alu_int, ptx_alu_float, ptx_alu_half, ptx_alu_logic;
