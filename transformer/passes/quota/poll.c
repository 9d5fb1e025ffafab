#include "passes/quota/poll.h"

#include "passes/hidden.h"
#include "passes/quota/quota.h"

/* Closes the words. If the launch was asked to leave some SMs, the number of drawn tickets is in
 * the word `asked`, or will be in a moment. */
static void write_close(struct cursor *at, struct rewrite *rewrite, struct operand words)
{
	struct operand dealt = hidden_dealt(at, rewrite);

	if (rewrite->safe)
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %old;"
			  "  atom.global.or.b32 %old, [%0+16], 0x80000000; setp.ge.s32 %p, %old, 0;"
			  "  add.u32 %old, %old, %1; @%p st.volatile.global.u32 [%0+20], %old; }",
			  words, dealt);
	else
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %old;"
			  "  atom.global.or.b32 %old, [%0+16], 0x80000000;"
			  "  setp.lt.s32 %p, %old, 0; @%p bra closed;"
			  "  setp.lt.u32 %p, %old, 0x40000000; @%p bra known;"
			  "wait: ld.volatile.global.u32 %old, [%0+32]; setp.lt.u32 %p, %old, "
			  "0x40000000;"
			  "  @%p bra wait; atom.global.or.b32 %old, [%0+32], 0x80000000;"
			  "  and.b32 %old, %old, 0x3fffffff;"
			  "known: add.u32 %old, %old, %1; st.volatile.global.u32 [%0+20], %old;"
			  "closed: mov.u32 %old, 0; }",
			  words, dealt);
}
static_assert(offsetof(struct weir_words, ticket) == 16, "in the templates");
static_assert(offsetof(struct weir_words, restart) == 20, "in the templates");
static_assert(offsetof(struct weir_words, asked) == 32, "in the template");
static_assert(WEIR_TICKET_ASKED == 0x40000000, "in the template");

void poll_host(struct cursor *at, struct rewrite *rewrite, struct operand words, bool quota,
	       struct operand otherwise)
{
	struct operand demand = hidden64(at, rewrite, HIDDEN(demand));
	struct operand hold = hidden64(at, rewrite, HIDDEN(hold));
	struct operand period = hidden32(at, rewrite, HIDDEN(period));
	struct operand time = quota ? quota_time(at, rewrite, words) : words;
	struct reg *asked = edit_register(rewrite->function, TYPE_b64);
	struct reg *held = edit_register(rewrite->function, TYPE_b32);
	struct quota_read read = {0};

	edit_code(at,
		  "{ .reg .pred %p; .reg .b64 %now, %after, %next, %old;"
		  "  ld.volatile.global.u64 %next, [%3]; setp.eq.u64 %p, %0, 0; @%p bra %1;"
		  "  mov.u64 %now, %globaltimer; setp.lt.u64 %p, %now, %next; @%p bra %1;"
		  "  cvt.u64.u32 %after, %2; add.u64 %after, %now, %after;"
		  "  atom.global.cas.b64 %old, [%3], %next, %after;"
		  "  setp.ne.u64 %p, %old, %next; @%p bra %1; }",
		  demand, otherwise, period, time);
	if (quota) /* the host's memory takes 1.2 us: all reads at a time */
		read = quota_read(at, rewrite, words, op_reg(asked));
	else
		edit_code(at, "ld.volatile.global.u64 %0, [%1];", op_reg(asked), demand);
	edit_code(at,
		  "{ .reg .pred %p; mov.u32 %0, 0; setp.ne.u64 %p, %1, 0;"
		  "  @%p ld.volatile.global.u32 %0, [%1]; }",
		  op_reg(held), hold);
	if (quota)
		quota_read_more(at, rewrite, &read, op_reg(asked));
	edit_code(at, "{ .reg .b64 %held64; cvt.u64.u32 %held64, %1; or.b64 %0, %0, %held64; }",
		  op_reg(asked), op_reg(held));
	if (quota)
		quota_poll(at, rewrite, words, &read, op_reg(asked));
	edit_code(at, "{ .reg .pred %p; setp.eq.u64 %p, %0, 0; @%p bra %1; }", op_reg(asked),
		  otherwise);
	write_close(at, rewrite, words);
}

void poll_alone(struct cursor *at, struct rewrite *rewrite, struct operand leader,
		struct operand draws)
{
	struct operand words = hidden64(at, rewrite, HIDDEN(words));
	struct block *again = edit_new_block(rewrite->function);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %w, %n; mov.u32 %w, %ctaid.x; add.u32 %w, %w, 1;"
		  "  mov.u32 %n, %nctaid.x; setp.eq.and.u32 %p, %w, %n, %0;"
		  "  setp.ne.and.u32 %p, %1, 0, %p; @!%p bra %2; }",
		  leader, hidden32(at, rewrite, HIDDEN(poller)), draws);
	cursor_place(at, again);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %t; ld.volatile.global.u32 %t, [%0+16];"
		  "  setp.ge.u32 %p, %t, 0x40000000; @%p bra %1; add.u32 %t, %t, %2;"
		  "  setp.ge.u32 %p, %t, %3; @%p bra %1; }",
		  words, draws, hidden_dealt(at, rewrite), hidden32(at, rewrite, HIDDEN(tickets)));
	poll_host(at, rewrite, words, true, op_block(again));
	edit_code(at, "membar.gl; bra %0;", draws);
}
