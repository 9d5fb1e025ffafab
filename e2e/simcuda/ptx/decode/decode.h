/* The decoder turns a parsed statement into a compiled instruction. opcodes.def maps opcodes to
 * decoder functions. A decoder takes the modifiers that it knows; a modifier that is left is an
 * error. */
#pragma once

#include "simcuda/ptx/parse/parse.h"

/* Reports an unknown opcode or modifier. The parse goes on; only this function cannot be run. */
int ptx_unknown(struct ptx_parser *p, const struct ptx_token *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

typedef int ptx_decoder(struct ptx_parser *p, struct ptx_statement *s);
/* NULL: there is no such opcode. */
ptx_decoder *ptx_decoder_find(const struct ptx_token *opcode);

/* Modifiers. */
bool ptx_take(struct ptx_statement *s, const char *modifier);
/* The first modifier that is a type; PTX_TYPES: none is. */
enum ptx_type ptx_take_type(struct ptx_statement *s);
/* Fails if a modifier is left. */
int ptx_no_more(struct ptx_parser *p, struct ptx_statement *s);
/* The index of the first of @words that is a modifier; n: none. */
size_t ptx_take_one_of(struct ptx_statement *s, const char *const *words, size_t n);

/* The last modifier that is a type, which stays; PTX_TYPES: none is. */
enum ptx_type ptx_last_type(const struct ptx_statement *s);
/* The last modifier, which must be a type. */
int ptx_take_last_type(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type *type);
/* rn, rz, rm, rp, rna: by enum ptx_round. */
#define PTX_ROUNDS 5
extern const char *const ptx_rounds[PTX_ROUNDS];

/* Operands. Each fails with the operand's number if the operand has another kind. */
int ptx_want(struct ptx_parser *p, struct ptx_statement *s, uint32_t least, uint32_t most);
int ptx_source(struct ptx_parser *p, struct ptx_statement *s, const struct ptx_operand *operand,
	       enum ptx_type type, uint32_t *ref);
int ptx_destination(struct ptx_parser *p, struct ptx_statement *s,
		    const struct ptx_operand *operand, uint32_t bytes, uint32_t *ref);
/* A predicate; @negated NULL: a ! is not allowed. */
int ptx_predicate(struct ptx_parser *p, struct ptx_statement *s, const struct ptx_operand *operand,
		  uint32_t *ref, bool *negated);
/* A row for a destination that is never read. */
uint32_t ptx_sink(struct ptx_parser *p, uint32_t bytes);
uint32_t ptx_constant(struct ptx_parser *p, uint64_t bits, uint32_t bytes,
		      struct ptx_variable *variable);

/* Appends an instruction. @s NULL: no guard, and its own line. */
int ptx_emit(struct ptx_parser *p, const struct ptx_statement *s, const struct ptx_insn *insn);
/* The same for a memory instruction; @variable: from ptx_decode_address(), may be NULL. */
int ptx_emit_memory(struct ptx_parser *p, const struct ptx_statement *s,
		    const struct ptx_insn *insn, struct ptx_variable *variable);
/* Notes that the function uses a variable. Its address is later added to the imm of instruction
 * @insn; SIZE_MAX: of none. */
int ptx_use(struct ptx_parser *p, struct ptx_variable *variable, size_t insn);
/* The imm of the last instruction, or its targets, is filled in when labels are resolved. */
int ptx_pend(struct ptx_parser *p, const struct ptx_token *name, bool is_list);

/* The table of plain instructions; NULL: none of this name. */
const struct ptx_plain *ptx_plain_find(const char *name);
/* Opcode and remaining modifiers, joined by '_'. False: too long. */
bool ptx_full_name(const struct ptx_statement *s, char *out, size_t room);

/* Decodes a memory operand: fills access.space, .address_wide, .in_frame, op[0] and imm. @variable:
 * the variable that it names, or NULL. */
int ptx_decode_address(struct ptx_parser *p, struct ptx_statement *s,
		       const struct ptx_operand *operand, struct ptx_insn *insn,
		       struct ptx_variable **variable);
/* Drops modifiers that only affect caches. True: an operand with a cache policy follows. */
bool ptx_drop_cache_hints(struct ptx_statement *s);
/* .global, .shared::cta …; generic when none is named. */
enum ptx_space ptx_take_space(struct ptx_statement *s);

#define DECODER(name) ptx_decoder ptx_decode_##name;
#define OPCODE(opcode, decoder)
#include "simcuda/ptx/decode/opcodes.def"
#undef OPCODE
#undef DECODER

/* Called by cp's decoder: cp.async.mbarrier.arrive; cp.async.bulk and its groups. */
ptx_decoder ptx_decode_copy_arrive, ptx_decode_bulk;
