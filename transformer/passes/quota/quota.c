#include "passes/quota/quota.h"

#include "passes/hidden.h"

/* The first thread: counts itself among those that have left, unless it need not leave, or all
 * others have. @word: as read. An addition, because hundreds leave at the same time, and of these
 * only one compare-and-swap in a microsecond would succeed. What was there before says by which
 * quota it leaves; if that is another by now, it takes itself out again. A loop, because ptxas
 * would merge straight code into the kernel's, for which it then takes more registers. */
static void write_leaving(struct cursor *at, struct rewrite *rewrite, struct operand word,
			  struct operand quota, struct block *draws)
{
	struct operand words = hidden64(at, rewrite, HIDDEN(words));
	struct operand counted = op_reg(edit_register(rewrite->function, TYPE_b32));

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; mov.u32 %3, 0; setp.ne.u32 %p, %0, 0;"
		  "  @%p bra known; atom.global.cas.b32 %x, [%1+36], 0, %2; setp.eq.u32 %p, %x, 0;"
		  "  selp.b32 %0, %2, %x, %p; known: mov.u32 %x, 0; }",
		  word, words, quota, counted);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x, %y;"
		  "again: bfe.u32 %x, %0, 16, 12; mov.u32 %y, %smid; add.u32 %x, %x, %y;"
		  "  mov.u32 %y, %nsmid; setp.lt.u32 %p, %x, %y; @%p bra stay;"
		  "  and.b32 %x, %0, 0xffff; add.u32 %x, %x, 1; mov.u32 %y, %nctaid.x;"
		  "  setp.ge.u32 %p, %x, %y; @%p bra stay; setp.ne.u32 %p, %2, 0; @%p bra left;"
		  "  atom.global.add.u32 %0, [%1+36], 1; mov.u32 %2, 1; bra again;"
		  "stay: setp.eq.u32 %p, %2, 0; @%p bra %3; red.global.add.u32 [%1+36], -1; bra %3;"
		  "left: mov.u32 %x, 0; }",
		  word, words, counted, op_block(draws));
}
static_assert(offsetof(struct weir_words, quota) == 36, "in the templates");
static_assert(WEIR_QUOTA_SHIFT == 16 && WEIR_QUOTA_SMS_MAX == 0xfff, "in the templates");
static_assert(WEIR_QUOTA_GONE == 0xffff, "in the templates");

void quota_look(struct cursor *at, struct rewrite *rewrite, struct operand leader,
		struct operand ticket, struct operand dealt, struct block *drawn)
{
	struct function *f = rewrite->function;
	struct operand word = op_reg(edit_register(f, TYPE_b32));
	struct operand quota = hidden32(at, rewrite, HIDDEN(quota));
	struct block *slow = edit_block(f, f->last, "quota"), *draws = edit_new_block(f);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; mov.u32 %0, 0; setp.ne.and.u64 %p, %1, 0, %2;"
		  "  @%p ld.volatile.global.u32 %0, [%3+36]; or.b32 %x, %0, %4;"
		  "  setp.ne.and.u32 %p, %x, 0, %p; @%p bra %5; }",
		  word, hidden64(at, rewrite, HIDDEN(room)), leader,
		  hidden64(at, rewrite, HIDDEN(words)), quota, op_block(slow));
	cursor_place(at, draws);

	struct cursor out = cursor_end(f, slow);
	write_leaving(&out, rewrite, word, quota, draws);
	edit_code(&out, "mov.u32 %0, 0xfffffffd; sub.u32 %0, %0, %1; bra %2;", ticket, dealt,
		  op_block(drawn));
}
static_assert(QUOTA_REFUSED == 0xfffffffd, "in the template");

/* From now on draws are void. */
static void write_ask(struct cursor *at, struct operand words)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %old; atom.global.or.b32 %old, [%0+16], 0x40000000;"
		  "  setp.lt.u32 %p, %old, 0x40000000; or.b32 %old, %old, 0x40000000;"
		  "  @%p st.volatile.global.u32 [%0+32], %old; membar.gl; }",
		  words);
}
static_assert(offsetof(struct weir_words, ticket) == 16, "in the templates");
static_assert(offsetof(struct weir_words, asked) == 32, "in the templates");
static_assert(WEIR_TICKET_ASKED == 0x40000000, "in the templates");

void quota_begin(struct cursor *at, struct rewrite *rewrite, struct operand leader)
{
	struct function *f = rewrite->function;
	struct block *slow = edit_block(f, f->last, "asked"), *draws = edit_new_block(f);

	edit_code(at,
		  "{ .reg .pred %p, %known; .reg .b32 %x; mov.u32 %x, 0; setp.ne.and.u64 %p, %0, "
		  "0, %1;"
		  "  @%p ld.volatile.global.u32 %x, [%2+36]; setp.ne.u32 %known, %x, 0;"
		  "  selp.b32 %x, %x, %3, %known; bfe.u32 %x, %x, 16, 12;"
		  "  setp.ne.and.u32 %p, %x, 0, %p; @%p bra %4; }",
		  hidden64(at, rewrite, HIDDEN(room)), leader, hidden64(at, rewrite, HIDDEN(words)),
		  hidden32(at, rewrite, HIDDEN(quota)), op_block(slow));
	cursor_place(at, draws);

	struct cursor out = cursor_end(f, slow);
	write_ask(&out, hidden64(&out, rewrite, HIDDEN(words)));
	edit_code(&out, "bra %0;", op_block(draws));
}

void quota_refused(struct cursor *at, struct rewrite *rewrite, const struct quota_draw *draw)
{
	struct function *f = rewrite->function;
	struct operand word = op_reg(edit_register(f, TYPE_b32)), words;
	struct block *stays = edit_block(f, f->last, "stays");

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; setp.eq.u64 %p, %0, 0; @%p bra %2;"
		  "  shr.u32 %x, %1, 30; setp.ne.u32 %p, %x, 1; @%p bra %2; }",
		  hidden64(at, rewrite, HIDDEN(room)), draw->drawn, op_block(draw->refused));
	words = hidden64(at, rewrite, HIDDEN(words));
	edit_code(at, "ld.volatile.global.u32 %0, [%1+36];", word, words);
	write_leaving(at, rewrite, word, hidden32(at, rewrite, HIDDEN(quota)), stays);
	edit_code(at, "mov.u32 %0, 0xfffffffd; bra %1;", draw->drawn, op_block(draw->given));

	struct cursor out = cursor_end(f, stays);
	edit_code(&out,
		  "{ .reg .pred %p; .reg .b32 %x;"
		  "again: atom.global.inc.u32 %x, [%1+32], 0xfffffffe; setp.lt.u32 %p, %x, "
		  "0x40000000;"
		  "  @%p bra again; mov.u32 %0, %x; and.b32 %x, %x, 0x3fffffff; add.u32 %x, %x, %2;"
		  "  setp.ge.s32 %p, %0, 0; @%p mov.u32 %0, %x; setp.ge.u32 %p, %0, %3;"
		  "  @%p mov.u32 %0, 0xfffffffd; @%p bra %4;"
		  "  st.shared.u32 [%5], %0; or.b32 %0, %0, 0x40000000; bra %6; }",
		  draw->drawn, words, hidden_dealt(&out, rewrite), draw->tickets,
		  op_block(draw->given), draw->slot, op_block(draw->valid));
}
static_assert(QUOTA_REFUSED == 0xfffffffd, "in the template");

struct operand quota_time(struct cursor *at, struct rewrite *rewrite, struct operand words)
{
	struct operand time = op_reg(edit_register(rewrite->function, TYPE_b64));

	if (!rewrite->safe)
		return words;
	edit_code(
		at,
		"{ .reg .pred %p; setp.ne.u64 %p, %1, 0; mov.u64 %0, %2; @%p add.u64 %0, %0, 56; }",
		time, hidden64(at, rewrite, HIDDEN(room)), words);
	return time;
}
static_assert(offsetof(struct weir_words, next_quota) == 56, "in the template");

/* Two reads of one sector of the host's memory take twice as long (H100). So there is one while
 * nobody above is at work. */
struct quota_read quota_read(struct cursor *at, struct rewrite *rewrite, struct operand words,
			     struct operand asked)
{
	struct quota_read read = {op_reg(edit_register(rewrite->function, TYPE_b32)),
				  op_reg(edit_register(rewrite->function, TYPE_b32))};

	edit_code(at,
		  "{ .reg .pred %p; .reg .b64 %from; mov.u32 %0, 0; mov.u64 %from, %4;"
		  "  setp.ne.u64 %p, %1, 0; @%p sub.u64 %from, %from, 8;"
		  "  @%p ld.volatile.global.u32 %0, [%2+36]; ld.volatile.global.u64 %3, [%from]; }",
		  read.word, hidden64(at, rewrite, HIDDEN(room)), words, asked,
		  hidden64(at, rewrite, HIDDEN(demand)));
	return read;
}

void quota_read_more(struct cursor *at, struct rewrite *rewrite, const struct quota_read *read,
		     struct operand asked)
{
	struct operand room = hidden64(at, rewrite, HIDDEN(room));

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; .reg .b64 %y; mov.u32 %0, 0;"
		  "  and.b32 %x, %1, 0x0fff0000; or.b32 %x, %x, %2; cvt.u64.u32 %y, %x;"
		  "  or.b64 %y, %y, %3; setp.ne.u64 %p, %y, 0; setp.ne.and.u64 %p, %4, 0, %p;"
		  "  @%p ld.volatile.global.u32 %0, [%4];"
		  "  @%p ld.volatile.global.u64 %3, [%5]; }",
		  read->sms, read->word, hidden32(at, rewrite, HIDDEN(quota)), asked, room,
		  hidden64(at, rewrite, HIDDEN(demand)));
}

/* All in one piece: with the loop out of line, ptxas gives ten resumable kernels more registers. */
void quota_poll(struct cursor *at, struct rewrite *rewrite, struct operand words,
		const struct quota_read *read, struct operand asked)
{
	struct operand sms = read->sms, word = read->word;
	struct operand room = hidden64(at, rewrite, HIDDEN(room));
	struct operand quota = hidden32(at, rewrite, HIDDEN(quota));
	struct block *decided = edit_new_block(rewrite->function);
	struct block *written = edit_new_block(rewrite->function);

	edit_code(at,
		  "{ .reg .pred %p; setp.eq.u64 %p, %0, 0; @%p bra %1; min.u32 %2, %2, 0xfff; }",
		  room, op_block(decided), sms);
	edit_code(at,
		  "{ .reg .pred %p, %back; .reg .b32 %was, %next, %x; .reg .b64 %y;"
		  "again: setp.eq.u32 %p, %0, 0; selp.b32 %was, %1, %0, %p;"
		  "  bfe.u32 %x, %was, 16, 12; setp.lt.u32 %back, %2, %x;"
		  "  and.b32 %x, %was, 0xffff; setp.ne.and.u32 %back, %x, 0, %back;"
		  "  setp.eq.and.u64 %back, %3, 0, %back; and.b32 %next, %was, 0x4000ffff;"
		  "  shl.b32 %x, %2, 16; or.b32 %next, %next, %x;"
		  "  @%back or.b32 %next, %next, 0x40000000; or.b32 %x, %2, %1;"
		  "  setp.ne.u32 %p, %x, 0; @%p or.b32 %next, %next, 0x80000000;"
		  "  setp.eq.u32 %p, %next, %was; @%p bra %5;"
		  "  atom.global.cas.b32 %x, [%4+36], %0, %next; setp.ne.u32 %p, %x, %0;"
		  "  mov.u32 %0, %x; @%p bra again;"
		  "  selp.b32 %x, 1, 0, %back; cvt.u64.u32 %y, %x; or.b64 %3, %3, %y; }",
		  word, quota, sms, asked, words, op_block(written));
	cursor_place(at, written);
	if (!rewrite->safe) {
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, 0; @%p bra %1; }", sms,
			  op_block(decided));
		write_ask(at, words);
	}
	cursor_place(at, decided);
}
static_assert(WEIR_QUOTA_RETURNING == 0x40000000 && WEIR_QUOTA_KNOWN == 0x80000000,
	      "in the templates");

void quota_end(struct cursor *at, struct rewrite *rewrite, struct operand is_done)
{
	struct function *f = rewrite->function;
	struct block *some = edit_block(f, f->last, "quota_end"), *on = edit_new_block(f);
	struct operand word = op_reg(edit_register(f, TYPE_b32)), words, report;

	edit_code(at,
		  "{ .reg .pred %p; ld.volatile.global.u32 %0, [%1+36]; setp.ne.u32 %p, %0, 0;"
		  "  @%p bra %2; }",
		  word, hidden64(at, rewrite, HIDDEN(words)), op_block(some));
	cursor_place(at, on);

	struct cursor out = cursor_end(f, some);
	words = hidden64(&out, rewrite, HIDDEN(words));
	report = hidden64(&out, rewrite, HIDDEN(report));
	edit_code(&out,
		  "{ .reg .pred %p; .reg .b32 %x; and.b32 %x, %0, 0x8fff0000; @%1 mov.u32 %x, 0;"
		  "  st.volatile.global.u32 [%2+36], %x; and.b32 %x, %0, 0xffff;"
		  "  setp.eq.u32 %p, %x, 0; @%p bra %3; }",
		  word, is_done, words, op_block(on));
	edit_code(&out,
		  "{ .reg .pred %p; .reg .b32 %partial, %returns;"
		  "  ld.volatile.global.v2.u32 {%partial, %returns}, [%2+48];"
		  "  bfe.u32 %0, %0, 30, 1; @%1 mov.u32 %0, 0; add.u32 %returns, %returns, %0;"
		  "  add.u32 %partial, %partial, 1;"
		  "  st.volatile.global.v2.u32 [%2+48], {%partial, %returns};"
		  "  setp.ne.u64 %p, %3, 0; @%p st.volatile.global.v2.u32 [%3+16], {%partial, "
		  "%returns};"
		  "  bra %4; }",
		  word, is_done, words, report, op_block(on));
}
static_assert(offsetof(struct weir_words, partial) == 48, "in the template");
static_assert(offsetof(struct weir_report, partial) == 16, "in the template");
