/* setp, set, testp, selp and logic on predicates. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/alu.h"
#include "simcuda/ptx/execute/half.h"

#define COMPARE(name, t, ...)                                         \
	static u32 compare_##name(const void *a_, const void *b_)     \
	{                                                             \
		u32 result = 0;                                       \
		for (u32 lane = 0; lane < PTX_LANES; lane++) {        \
			const t a = ((const t *)a_)[lane];            \
			const t b = ((const t *)b_)[lane];            \
			(void)b;                                      \
			result |= (u32)(__VA_ARGS__ ? 1 : 0) << lane; \
		}                                                     \
		return result;                                        \
	}
#include "simcuda/ptx/execute/compare.def"
#undef COMPARE

static const struct {
	const char *name;
	ptx_compare *compare;
} comparisons[] = {
#define COMPARE(name, t, ...) {#name, compare_##name},
#include "simcuda/ptx/execute/compare.def"
#undef COMPARE
};

ptx_compare *ptx_compare_find(const char *name)
{
	for (size_t k = 0; k < sizeof(comparisons) / sizeof(comparisons[0]); k++)
		if (strcmp(comparisons[k].name, name) == 0)
			return comparisons[k].compare;
	return NULL;
}

/* Of lanes' halves, @shift 0 or 16, which become values of their own. */
static u32 compare_halves(struct ptx_warp *w, const struct ptx_insn *i, u32 shift)
{
	const u32 *a = ptx_row(w, i->op[2]), *b = ptx_row(w, i->op[3]);
	u16 *x = (u16 *)w->scratch[0], *y = (u16 *)w->scratch[1];

	for (u32 lane = 0; lane < PTX_LANES; lane++) {
		x[lane] = (u16)(a[lane] >> shift);
		y[lane] = (u16)(b[lane] >> shift);
	}
	if (i->logic.ftz) {
		ptx_flush(PTX_f16, x, x);
		ptx_flush(PTX_f16, y, y);
	}
	return i->compare(x, y);
}

static u32 compare_rows(struct ptx_warp *w, const struct ptx_insn *i)
{
	const void *a = ptx_row(w, i->op[2]), *b = ptx_row(w, i->op[3]);

	if (i->logic.pair)
		return compare_halves(w, i, 0);
	if (i->logic.ftz) {
		ptx_flush(PTX_f32, w->scratch[0], a);
		ptx_flush(PTX_f32, w->scratch[1], b);
		a = w->scratch[0];
		b = w->scratch[1];
	}
	return i->compare(a, b);
}

/* With the third predicate. */
static u32 combine(struct ptx_warp *w, const struct ptx_insn *i, u32 outcome)
{
	if (i->logic.combine == PTX_ALONE)
		return outcome;
	u32 other = *(u32 *)ptx_row(w, i->op[4]);
	if (i->logic.negated)
		other = ~other;
	return i->logic.combine == PTX_AND  ? outcome & other
	       : i->logic.combine == PTX_OR ? outcome | other
					    : outcome ^ other;
}

static void set_predicate(struct ptx_warp *w, u32 ref, u32 mask, u32 value)
{
	u32 *word = ptx_row(w, ref);

	*word = (*word & ~mask) | (value & mask);
}

enum ptx_flow ptx_exec_setp(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	u32 outcome = compare_rows(w, i);
	/* The second result: of the upper halves, or the opposite. */
	u32 second = i->logic.pair ? compare_halves(w, i, 16) : ~outcome;
	u32 p = combine(w, i, outcome), q = combine(w, i, second);

	set_predicate(w, i->op[0], mask, p);
	if (i->op[1] != PTX_NO_ROW)
		set_predicate(w, i->op[1], mask, q);
	return PTX_NEXT;
}

static const u32 set_results[] = {
	[PTX_ALL_ONES] = UINT32_MAX,
	[PTX_ONE_F32] = 0x3f800000,
	[PTX_ONE_F16] = 0x3c00,
	[PTX_ONE_BF16] = 0x3f80,
};

static enum ptx_flow set_halves(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 low = combine(w, i, compare_halves(w, i, 0));
	u32 high = combine(w, i, compare_halves(w, i, 16));
	u32 yes = set_results[i->logic.result] & 0xffff;
	u32 *d = ptx_row(w, i->op[0]);

	PTX_FOR_LANES(mask, lane,
		      d[lane] = (low >> lane & 1 ? yes : 0) | (high >> lane & 1 ? yes << 16 : 0););
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_set(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	if (i->logic.pair)
		return set_halves(w, i, mask);
	u32 outcome = combine(w, i, compare_rows(w, i));
	u32 yes = set_results[i->logic.result];
	u32 *d = ptx_row(w, i->op[0]);

	PTX_FOR_LANES(mask, lane, d[lane] = outcome >> lane & 1 ? yes : 0;);
	return PTX_NEXT;
}

#define SELP(bits)                                                                       \
	PTX_EXEC(selp_b##bits)                                                           \
	{                                                                                \
		u##bits *d = ptx_row(w, i->op[0]);                                       \
		const u##bits *a = ptx_row(w, i->op[1]), *b = ptx_row(w, i->op[2]);      \
		u32 p = *(u32 *)ptx_row(w, i->op[3]);                                    \
		PTX_FOR_LANES(mask, lane, d[lane] = p >> lane & 1 ? a[lane] : b[lane];); \
		return PTX_NEXT;                                                         \
	}
SELP(16)
SELP(32)
SELP(64)

#define LOGIC2(name, value)                              \
	PTX_EXEC(name##_pred)                            \
	{                                                \
		u32 a = *(u32 *)ptx_row(w, i->op[1]);    \
		u32 b = *(u32 *)ptx_row(w, i->op[2]);    \
		set_predicate(w, i->op[0], mask, value); \
		return PTX_NEXT;                         \
	}
LOGIC2(and, a &b)
LOGIC2(or, a | b)
LOGIC2(xor, a ^ b)

PTX_EXEC(not_pred)
{
	set_predicate(w, i->op[0], mask, ~*(u32 *)ptx_row(w, i->op[1]));
	return PTX_NEXT;
}

PTX_EXEC(mov_pred)
{
	set_predicate(w, i->op[0], mask, *(u32 *)ptx_row(w, i->op[1]));
	return PTX_NEXT;
}

#define SELP_NAMES(type, bits)                          \
	{                                               \
		"selp_" #type, exec_selp_b##bits, 4,    \
		{                                       \
			bits / 8, bits / 8, bits / 8, 0 \
		}                                       \
	}
static const struct ptx_plain rows[] = {
	SELP_NAMES(b16, 16),
	SELP_NAMES(u16, 16),
	SELP_NAMES(s16, 16),
	SELP_NAMES(f16, 16),
	SELP_NAMES(b32, 32),
	SELP_NAMES(u32, 32),
	SELP_NAMES(s32, 32),
	SELP_NAMES(f32, 32),
	SELP_NAMES(b64, 64),
	SELP_NAMES(u64, 64),
	SELP_NAMES(s64, 64),
	SELP_NAMES(f64, 64),
	{"and_pred", exec_and_pred, 3},
	{"or_pred", exec_or_pred, 3},
	{"xor_pred", exec_xor_pred, 3},
	{"not_pred", exec_not_pred, 2},
	{"mov_pred", exec_mov_pred, 2},
};

const struct ptx_plain_table ptx_alu_logic = {rows, sizeof(rows) / sizeof(rows[0])};
