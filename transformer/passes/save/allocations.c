// clang-format off
/* The more is allocated in the heap, the longer malloc() may take: a call takes up to 1.6 ms where
 * 65 536 blocks of memory are in use, 6 ms where 262 144 are, also alone (H100). So only the first
 * workers allocate, with so many threads as weir_persistent.allocating says, and each time a worker
 * has no more ticket one more may:
 *
 *		rank = worker - workers that were refused a ticket
 *		rank * threads < allocating?  it may
 *		nobody inside, so many times in succession?  it may
 *		it has looked patience * WEIR_PATIENCE_LOOKS times?  it may
 *
 * A block that allocates may wait for one that may not yet. Then soon nobody is in malloc() or
 * free(), so that one may, too; and if others call them without end, it may later. */
// clang-format on
#include "passes/save/allocations.h"

#include "passes/hidden.h"

#include "weir/preempt-abi.h"

#include <stddef.h>

#define QUIET 64u /* looks: with 256 blocks half a millisecond (calls.c) */

void allocations_init(struct allocations *allocations, struct function *f)
{
	struct cursor at = cursor_start(f, f->entry);

	if (allocations->quiet)
		return;
	allocations->quiet = edit_variable(f, SPACE_SHARED, "quiet", 8, 8);
	edit_code(&at, "{ .reg .b64 %zero; mov.u64 %zero, 0; st.volatile.shared.u64 [%0], %zero; }",
		  op_variable(allocations->quiet));
}

/* Tickets that were drawn beyond the last one: so many workers have none. */
static struct reg *write_refused(struct cursor *at, struct rewrite *rewrite, struct reg *due)
{
	struct reg *refused = edit_named_register(rewrite->function, TYPE_b32, "refused");

	edit_code(
		at,
		"mov.u32 %0, 0; @%1 ld.volatile.global.u32 %0, [%2+16]; and.b32 %0, %0, 0x3fffffff;"
		"max.u32 %0, %0, %3; sub.u32 %0, %0, %3;",
		op_reg(refused), op_reg(due), hidden64(at, rewrite, HIDDEN(words)),
		hidden32(at, rewrite, HIDDEN(tickets)));
	return refused;
}
static_assert(offsetof(struct weir_words, ticket) == 16, "in the template");

/* Counts a look of a block that is @late. It is late no longer when its patience is over. */
static void write_patience(struct cursor *at, struct rewrite *rewrite,
			   const struct allocations *allocations, struct reg *late)
{
	edit_code(at,
		  "{ .reg .b32 %n, %most; mul.lo.u32 %most, %2, %3; sub.u32 %most, %most, 1;"
		  "  mov.u32 %n, 0; @%0 ld.volatile.shared.u32 %n, [%1+4];"
		  "  add.u32 %n, %n, 1; @%0 st.volatile.shared.u32 [%1+4], %n;"
		  "  setp.le.and.u32 %0, %n, %most, %0; }",
		  op_reg(late), op_variable(allocations->quiet),
		  hidden16(at, rewrite, HIDDEN(patience)), op_int(WEIR_PATIENCE_LOOKS));
}

void allocations_admit(struct cursor *at, struct rewrite *rewrite,
		       const struct allocations *allocations, struct reg *inside, struct reg *due)
{
	struct function *f = rewrite->function;
	struct reg *refused = write_refused(at, rewrite, due);
	struct reg *late = edit_named_register(f, TYPE_pred, "late");

	edit_code(at,
		  "{ .reg .b32 %w, %x, %most; mov.u32 %w, %ctaid.x; min.u32 %x, %0, %w;"
		  "  sub.u32 %w, %w, %x; mov.u32 %x, %ntid.x; mul.lo.u32 %w, %w, %x;"
		  "  mov.u32 %x, %ntid.y; mul.lo.u32 %w, %w, %x; mov.u32 %x, %ntid.z;"
		  "  mul.lo.u32 %w, %w, %x; sub.u32 %most, %1, 1; setp.gt.and.u32 %2, %w, %most, "
		  "%3; }",
		  op_reg(refused), hidden16(at, rewrite, HIDDEN(allocating)), op_reg(late),
		  op_reg(due));
	write_patience(at, rewrite, allocations, late);
	edit_code(at,
		  "{ .reg .pred %nobody, %again; .reg .b32 %n, %x; mov.u32 %n, 0;"
		  "  setp.eq.and.u32 %nobody, %0, 0, %1; @%nobody ld.volatile.shared.u32 %n, [%2];"
		  "  add.u32 %x, %n, 1; selp.b32 %x, %x, 0, %nobody; @%1 st.volatile.shared.u32 "
		  "[%2], %x;"
		  "  setp.lt.and.u32 %again, %n, %4, %1; not.pred %again, %again;"
		  "  and.pred %3, %3, %again; }",
		  op_reg(inside), op_reg(late), op_variable(allocations->quiet), op_reg(due),
		  op_int(QUIET));
}
