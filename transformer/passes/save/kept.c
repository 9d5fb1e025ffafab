/* Which variables in shared memory a block saves (shared-live.h). One that no safe point needs has
 * no place in the save. For one that only some need, each thread that leaves adds to a word in
 * shared memory which are live and which are written at its safe point. The block saves those that
 * are both, for some thread each, and stores the word in the save's header for the restore. */
#include "passes/save/save.h"

#define BYTES_MIN     64u /* of a variable that is worth a branch */
#define WRITTEN_SHIFT 16u /* the word: sets of live and written variables */
#define MASK_OFFSET   4u  /* in the header */
static_assert(SHARED_LIVE_MAX < WRITTEN_SHIFT, "both sets fit in a word");

static uint32_t live_at(const struct saver *s, const struct safe_point *point)
{
	return s->shared.live[point->at->order];
}

/* Threads leave through `leave`, if at all. */
static uint32_t written_at(const struct saver *s, const struct safe_point *point)
{
	unsigned order = point->leave->order;

	return order == CFG_UNREACHED ? 0 : s->shared.written[order];
}

static void list_tracked(struct saver *s)
{
	struct shared_live *shared = &s->shared;

	if (s->variables.dynamic)
		shared->list[shared->n++] = s->variables.dynamic;
	for (unsigned k = 0; k < s->variables.n && shared->n < SHARED_LIVE_MAX; k++) {
		struct variable *v = s->variables.list[k];

		/* Those without a line are the passes'. */
		if (v->space == SPACE_SHARED && v->at.line && v->size >= BYTES_MIN)
			shared->list[shared->n++] = v;
	}
}

static void drop(struct saver *s, uint32_t needed)
{
	struct variable_set *set = &s->variables;
	unsigned n = 0;

	for (unsigned k = 0; k < set->n; k++)
		if (set->list[k]->space != SPACE_SHARED ||
		    needed & shared_live_bit(&s->shared, set->list[k]))
			set->list[n++] = set->list[k];
	set->n = n;
	if (set->dynamic && !(needed & shared_live_bit(&s->shared, set->dynamic)))
		set->dynamic = NULL;
}

/* Bytes of the variables in @set, dynamic memory left out. */
static uint32_t bytes_of(const struct saver *s, uint32_t set)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < s->variables.n; k++) {
		const struct variable *v = s->variables.list[k];

		if (v->space == SPACE_SHARED && set & shared_live_bit(&s->shared, v))
			bytes += v->size;
	}
	return (uint32_t)bytes;
}

/* The mean over the points where a block begins to leave. */
static uint32_t mean_spared(const struct saver *s)
{
	uint64_t sum = 0;
	unsigned n = 0;

	for (const struct safe_point *p = s->safe->points; p; p = p->next) {
		if (p->at->order == CFG_UNREACHED || p->is_common)
			continue;
		sum += bytes_of(s, s->varying & ~(live_at(s, p) & written_at(s, p)));
		n++;
	}
	return n ? (uint32_t)(sum / n) : 0;
}

/* Threads leave at a common point only if others left elsewhere. */
void kept_find(struct saver *s)
{
	uint32_t live = 0, written = 0, always = UINT32_MAX;

	list_tracked(s);
	if (!s->shared.n)
		return;
	shared_live_build(&s->shared, s->f, &s->cfg, s->safe->next);
	for (const struct safe_point *p = s->safe->points; p; p = p->next) {
		if (p->at->order == CFG_UNREACHED)
			continue;
		live |= live_at(s, p);
		written |= written_at(s, p);
		if (!p->is_common)
			always &= live_at(s, p) & written_at(s, p);
	}
	drop(s, live & written);
	s->varying = live & written & ~always;
	s->spared = mean_spared(s);
	if (s->varying)
		s->kept = edit_variable(s->f, SPACE_SHARED, "kept", 4, 4);
}

void kept_begin(struct cursor *at, struct saver *s)
{
	if (s->kept)
		edit_code(at, "{ .reg .b32 %zero; mov.u32 %zero, 0; st.shared.u32 [%0], %zero; }",
			  op_variable(s->kept));
}

void kept_note(struct cursor *at, struct saver *s, const struct safe_point *point)
{
	uint32_t sets;

	if (!s->kept)
		return;
	sets = (live_at(s, point) & s->varying) | (written_at(s, point) & s->varying)
							  << WRITTEN_SHIFT;
	if (sets)
		edit_code(at,
			  "{ .reg .b32 %sets; mov.u32 %sets, %1; red.shared.or.b32 [%0], %sets; }",
			  op_variable(s->kept), op_int(sets));
}

struct reg *kept_which(struct cursor *at, bool saves, struct saver *s, const struct slot *slot)
{
	struct reg *which;

	if (!s->kept)
		return NULL;
	which = edit_named_register(s->f, TYPE_b32, "kept");
	if (saves)
		edit_code(at,
			  "{ .reg .pred %first; ld.volatile.shared.u32 %0, [%1];"
			  "  setp.eq.u32 %first, %2, 0; @%first st.global.u32 [%3+4], %0; }",
			  op_reg(which), op_variable(s->kept), op_reg(slot->thread),
			  op_reg(slot->base));
	else
		edit_code(at, "ld.global.u32 %0, [%1+4];", op_reg(which), op_reg(slot->base));
	edit_code(at, "{ .reg .b32 %x; shr.u32 %x, %0, 16; and.b32 %0, %0, %x; }", op_reg(which));
	return which;
}
static_assert(MASK_OFFSET == 4 && WRITTEN_SHIFT == 16, "in the templates");

struct block *kept_unless(struct cursor *at, struct saver *s, struct reg *which,
			  const struct variable *v)
{
	uint32_t bit = shared_live_bit(&s->shared, v);
	struct block *behind;

	if (!(bit & s->varying))
		return NULL;
	behind = edit_new_block(s->f);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x; and.b32 %x, %0, %1; setp.eq.u32 %p, %x, 0;"
		  "  @%p bra %2; }",
		  op_reg(which), op_int(bit), op_block(behind));
	return behind;
}
