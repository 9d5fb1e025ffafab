#include "passes/look.h"

#include "passes/hidden.h"
#include "passes/quota/poll.h"
#include "passes/safe-point.h"
#include "passes/save/drain.h"

/* The mask of lanes that the warp has. */
static void write_lanes(struct cursor *at, struct reg *lanes)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %n, %m, %x, %y, %z, %t;"
		  "  mov.u32 %x, %ntid.x; mov.u32 %y, %ntid.y; mov.u32 %z, %ntid.z;"
		  "  mul.lo.u32 %n, %x, %y; mul.lo.u32 %n, %n, %z;"
		  "  mov.u32 %t, %tid.z; mov.u32 %m, %tid.y; mad.lo.u32 %t, %t, %y, %m;"
		  "  mov.u32 %m, %tid.x; mad.lo.u32 %t, %t, %x, %m;"
		  "  and.b32 %t, %t, -32; sub.u32 %n, %n, %t; mov.u32 %0, -1;"
		  "  setp.ge.u32 %p, %n, 32; @%p mov.u32 %n, 0; neg.s32 %n, %n; and.b32 %n, %n, 31;"
		  "  shr.u32 %0, %0, %n; }",
		  op_reg(lanes));
}

/* One of the lanes that are here together continues; the others go to @others. */
static void write_first(struct cursor *at, struct reg *here, struct block *others)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; mov.u32 %x, %lanemask_lt; and.b32 %x, %x, %0;"
		  "  setp.ne.u32 %p, %x, 0; @%p bra %1; }",
		  op_reg(here), op_block(others));
}

/* For one lane. Reads the group's flag, and polls for the whole GPU when that is due. @go: the
 * launch is closed, by this lane or by somebody else. To @decide. */
static void write_look(struct cursor *at, struct rewrite *rewrite, struct reg *go,
		       struct operand id, struct block *decide)
{
	struct function *f = rewrite->function;
	struct operand group = op_reg(edit_register(f, TYPE_b64));
	struct operand next = op_reg(edit_register(f, TYPE_b64));
	struct operand period = hidden32(at, rewrite, HIDDEN(period));
	struct operand saves = hidden64(at, rewrite, HIDDEN(saves));
	struct operand stride = hidden64(at, rewrite, HIDDEN(save_stride));
	struct block *mark = edit_new_block(f);

	edit_code(at,
		  "{ .reg .b32 %w; .reg .b64 %w64; mov.u32 %w, %ctaid.x; and.b32 %w, %w, %3;"
		  "  cvt.u64.u32 %w64, %w; mad.lo.u64 %0, %w64, %1, %2; }",
		  group, stride, saves, op_int(~(uint64_t)(SAFE_POINT_GROUP - 1) & UINT32_MAX));
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %flag, %x, %lo, %hi; .reg .b64 %now, %period64;"
		  "  ld.volatile.global.v4.u32 {%flag, %x, %lo, %hi}, [%0+16];"
		  "  setp.eq.u32 %1, %flag, %2; @%1 bra %3;"
		  "  mov.b64 %4, {%lo, %hi}; mov.u64 %now, %globaltimer; sub.u64 %4, "
		  "%4, %now;"
		  "  cvt.u64.u32 %period64, %5; setp.lt.u64 %p, %4, %period64; @%p bra %6;"
		  "  add.u64 %now, %now, %period64; st.volatile.global.u64 [%0+24], %now; }",
		  group, op_reg(go), id, op_block(mark), next, period, op_block(decide));
	poll_host(at, rewrite, hidden64(at, rewrite, HIDDEN(words)), false, op_block(decide));
	edit_code(at, "mov.pred %0, 1; red.shared.max.u32 [%1], %2; bra %3;", op_reg(go),
		  op_variable(rewrite->safe->watch), op_int(WATCH_CLOSED), op_block(decide));
	cursor_place(at, mark);
	edit_code(at, "red.shared.max.u32 [%0], %1;", op_variable(rewrite->safe->watch),
		  op_int(WATCH_ASKED));
}

/* If a lane has closed the launch, all lanes @here set the flags. With a hundred flags, and a dozen
 * warps that compute beside it, one lane alone would take microseconds. */
static void write_flags(struct cursor *at, struct rewrite *rewrite, struct operand here,
			struct operand id)
{
	struct operand first = op_reg(edit_register(rewrite->function, TYPE_b32));
	struct operand n = op_reg(edit_register(rewrite->function, TYPE_b32));
	struct operand watch = op_variable(rewrite->safe->watch);
	struct block *set = edit_new_block(rewrite->function);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %state; ld.volatile.shared.u32 %state, [%0];"
		  "  setp.ne.u32 %p, %state, %1; @%p bra %2; }",
		  watch, op_int(WATCH_CLOSED), op_block(set));
	edit_code(at,
		  "mov.u32 %0, %lanemask_lt; and.b32 %0, %0, %2; popc.b32 %0, %0; popc.b32 %1, %2;",
		  first, n, here);
	safe_point_set_flags(at, rewrite, id, first, n);
	edit_code(at, "red.shared.max.u32 [%0], %1;", watch, op_int(WATCH_ASKED));
	cursor_place(at, set);
}

/* To @decide if the block's words in shared memory tell enough. Otherwise the warp reads the flag,
 * and its periods begin early from now on. @go: it is to leave. @id: the number of the launch.
 * Reads the clock where it needs it: one register more costs some kernels a block on each SM. */
static void write_due(struct cursor *at, struct rewrite *rewrite, struct reg *go, struct reg *id,
		      struct block *decide)
{
	struct operand since = op_reg(rewrite->safe->since);
	struct operand look = hidden32(at, rewrite, HIDDEN(look));
	struct operand lead = hidden32(at, rewrite, HIDDEN(lead));

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %leave, %looked, %ago, %x;"
		  "  ld.volatile.shared.v4.u32 {%leave, %looked, %0, %x}, [%1];"
		  "  setp.ne.u32 %2, %leave, 0; @%2 bra %3;"
		  "  mov.u32 %ago, %clock; sub.u32 %ago, %ago, %looked;"
		  "  setp.lt.u32 %p, %ago, %5; add.u32 %looked, %looked, %5;"
		  "  @%p sub.u32 %6, %looked, %4; shr.u32 %x, %4, 1;"
		  "  setp.lt.u32 %p, %ago, %x; @%p bra %3; }",
		  op_reg(id), op_variable(rewrite->safe->watch), op_reg(go), op_block(decide), look,
		  lead, since);
	edit_code(at,
		  "{ .reg .b32 %from; mov.u32 %0, %clock; add.u32 %0, %0, %2; neg.s32 %from, %1;"
		  "  and.b32 %0, %0, %from; sub.u32 %0, %0, %2; }",
		  since, look, lead);
}

void look_check(struct rewrite *rewrite, struct safe_point *point, bool together)
{
	struct function *f = rewrite->function;
	struct block *check = point->check, *decide = edit_block(f, check, "decide");
	struct reg *go = edit_named_register(f, TYPE_pred, "go"),
		   *here = edit_named_register(f, TYPE_b32, "here"),
		   *id = edit_named_register(f, TYPE_b32, "id");
	struct cursor at = cursor_end(f, check);

	safe_point_begin_period(&at, rewrite);
	edit_code(&at, "activemask.b32 %0;", op_reg(here));
	if (together) {
		struct reg *lanes = edit_named_register(f, TYPE_b32, "lanes");

		write_lanes(&at, lanes);
		edit_code(&at, "{ .reg .pred %p; setp.ne.u32 %p, %0, %1; @%p bra %2; }",
			  op_reg(here), op_reg(lanes), op_block(point->at));
	}
	write_due(&at, rewrite, go, id, decide);
	write_first(&at, here, decide);
	edit_code(&at,
		  "{ .reg .b32 %now; mov.u32 %now, %clock; st.volatile.shared.u32 [%0+4], %now; }",
		  op_variable(rewrite->safe->watch));
	write_look(&at, rewrite, go, op_reg(id), decide);
	at = cursor_end(f, decide);
	edit_code(&at, "vote.sync.any.pred %0, %0, %1; @!%0 bra %2;", op_reg(go), op_reg(here),
		  op_block(point->at));
	write_flags(&at, rewrite, op_reg(here), op_reg(id));
	drain_choose(&at, rewrite, op_reg(here), point->leave);
	edit_code(&at, "bra %0;", op_block(point->at));
}
