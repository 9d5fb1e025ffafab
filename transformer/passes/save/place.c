/* Where in the save of its worker a thread finds what is its own. */
#include "passes/save/save.h"

#include "passes/hidden.h"

struct slot save_slot(struct cursor *at, struct saver *s)
{
	struct slot slot = {edit_named_register(s->f, TYPE_b64, "save"),
			    edit_named_register(s->f, TYPE_b32, "thread"),
			    edit_named_register(s->f, TYPE_b32, "rounded"),
			    edit_named_register(s->f, TYPE_b32, "count")};
	struct operand saves = hidden64(at, s->rewrite, HIDDEN(saves));
	struct operand stride = hidden64(at, s->rewrite, HIDDEN(save_stride));

	edit_code(at,
		  "{ .reg .b32 %w; .reg .b64 %w64; mov.u32 %w, %ctaid.x; cvt.u64.u32 %w64, %w;"
		  "  mad.lo.u64 %0, %w64, %1, %2; }",
		  op_reg(slot.base), stride, saves);
	edit_code(at,
		  "{ .reg .b32 %x, %y, %t;"
		  "  mov.u32 %x, %ntid.x; mov.u32 %y, %ntid.y; mov.u32 %t, %ntid.z;"
		  "  mul.lo.u32 %t, %t, %y; mul.lo.u32 %2, %t, %x;"
		  "  add.u32 %1, %2, 31; and.b32 %1, %1, -32;"
		  "  mov.u32 %0, %tid.z; mov.u32 %t, %tid.y; mad.lo.u32 %0, %0, %y, %t;"
		  "  mov.u32 %t, %tid.x; mad.lo.u32 %0, %0, %x, %t; }",
		  op_reg(slot.thread), op_reg(slot.rounded), op_reg(slot.count));
	return slot;
}

struct reg *save_place(struct cursor *at, struct saver *s, const struct slot *slot, uint32_t offset,
		       uint32_t bytes)
{
	struct reg *place = edit_named_register(s->f, TYPE_b64, "place");

	edit_code(at,
		  "{ .reg .b64 %x; mul.wide.u32 %x, %1, %2; add.u64 %0, %3, %x;"
		  "  mul.wide.u32 %x, %4, %5; add.u64 %0, %0, %x; add.u64 %0, %0, %6; }",
		  op_reg(place), op_reg(slot->rounded), op_int(offset), op_reg(slot->base),
		  op_reg(slot->thread), op_int(bytes), op_int(s->fixed));
	return place;
}

struct reg *save_step(struct cursor *at, struct saver *s, const struct slot *slot, uint32_t bytes)
{
	struct reg *step = edit_named_register(s->f, TYPE_b64, "step");

	edit_code(at, "mul.wide.u32 %0, %1, %2;", op_reg(step), op_reg(slot->rounded),
		  op_int(bytes));
	return step;
}
