/* The way to where a thread goes on. Who goes on inside a loop enters it at its head, as everybody
 * does: ptxas lets lanes of a warp meet again only in loops that have no other entry. While a
 * thread is on its way, the number of its next vote is the complement of the point's, and loops'
 * heads ask for it.
 */
#include "passes/save/save.h"
#include "passes/exit-barrier.h"

/* The loop inside @outer, NULL: around the tickets, that @b is in; NULL: none. */
static struct loop *inner_loop(const struct saver *s, const struct loop *outer,
			       const struct block *b)
{
	struct loop *inner = NULL;

	for (struct loop *l = b->loop; l && l != outer && l->head != s->safe->given; l = l->parent)
		inner = l;
	return inner;
}

static bool is_in(const struct loop *loop, const struct block *b)
{
	return !loop || (b->order != CFG_UNREACHED && loop_contains(loop, b));
}

/* One step of the way from the restore to the points in @loop, NULL: to all: to the heads of the
 * loops in it, or to the points themselves. */
static void write_ways(struct saver *s, struct cursor *at, const struct loop *loop)
{
	struct safe_point *point = s->safe->points;
	struct block *to = NULL;

	for (unsigned k = 0; point; k++, point = point->next) {
		struct loop *inner;

		if (point->at->order == CFG_UNREACHED || !is_in(loop, point->at))
			continue;
		inner = inner_loop(s, loop, point->at);
		to = inner ? inner->head : s->resume[k];
		edit_code(at, "{ .reg .pred %p; setp.eq.u32 %p, %0, %1; @%p bra %2; }",
			  op_reg(s->rewrite->votes->next), op_int(~k & UINT32_MAX), op_block(to));
	}
	if (to)
		edit_code(at, "bra %0;", op_block(to));
}

static bool has_points(const struct saver *s, const struct loop *loop)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->at->order != CFG_UNREACHED && loop_contains(loop, p->at))
			return true;
	return false;
}

/* Where to ask at the head of the loop; where there is a check, only if it is made. */
static struct block *asking(const struct saver *s, const struct loop *loop)
{
	for (const struct safe_point *p = s->safe->points; p; p = p->next)
		if (p->head == loop->head)
			return p->check;
	return loop->head;
}

static void write_entries(struct saver *s)
{
	for (struct loop *loop = s->f->loops; loop; loop = loop->next) {
		struct block *ways;
		struct cursor at;

		if (loop->head == s->safe->given || !has_points(s, loop))
			continue;
		ways = edit_block(s->f, s->f->last, "ways");
		at = cursor_start(s->f, asking(s, loop));
		edit_code(&at, "{ .reg .pred %p; setp.lt.s32 %p, %0, 0; @%p bra %1; }",
			  op_reg(s->rewrite->votes->next), op_block(ways));
		at = cursor_end(s->f, ways);
		write_ways(s, &at, loop);
	}
}

void save_write_ways(struct saver *s, struct cursor *at)
{
	write_entries(s);
	write_ways(s, at, NULL);
}
