/* Rounding modes, flushing of subnormals and saturation around the plain form of an instruction.
 * Sources that must be flushed are copied to scratch rows; then the plain form runs, and its result
 * is flushed and saturated. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/warp.h"

#include <fenv.h>

static const int rounding[] = {
	[PTX_RN] = FE_TONEAREST,
	[PTX_RZ] = FE_TOWARDZERO,
	[PTX_RM] = FE_DOWNWARD,
	[PTX_RP] = FE_UPWARD,
};

void ptx_round_set(enum ptx_round round)
{
	fesetround(rounding[round]);
}

/* Two halves whose exponents are the bits @exponent of each. */
static uint32_t flush_halves(uint32_t pair, uint32_t exponent)
{
	uint32_t keep = 0x80008000;

	if (pair & exponent)
		keep |= 0xffff;
	if (pair & exponent << 16)
		keep |= 0xffff0000;
	return pair & keep;
}

void ptx_flush(enum ptx_type type, void *to, const void *from)
{
	switch (type) {
	case PTX_f32:
		for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
			uint32_t v = ((const uint32_t *)from)[lane];
			((uint32_t *)to)[lane] = v & 0x7f800000 ? v : v & 0x80000000;
		}
		break;
	case PTX_f64:
		for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
			uint64_t v = ((const uint64_t *)from)[lane];
			((uint64_t *)to)[lane] =
				v & 0x7ff0000000000000 ? v : v & 0x8000000000000000;
		}
		break;
	case PTX_f16:
	case PTX_bf16:
		for (uint32_t lane = 0; lane < PTX_LANES; lane++)
			((uint16_t *)to)[lane] = (uint16_t)flush_halves(
				((const uint16_t *)from)[lane], type == PTX_f16 ? 0x7c00 : 0x7f80);
		break;
	default: /* f16x2, bf16x2 */
		for (uint32_t lane = 0; lane < PTX_LANES; lane++)
			((uint32_t *)to)[lane] = flush_halves(((const uint32_t *)from)[lane],
							      type == PTX_f16x2 ? 0x7c00 : 0x7f80);
	}
}

static uint16_t saturate_half(uint16_t bits)
{
	if (bits & 0x8000 || bits > 0x7c00)
		return 0;
	return bits > 0x3c00 ? 0x3c00 : bits;
}

/* To [0, 1]; NaN becomes 0. */
static void saturate(enum ptx_type type, void *row)
{
	for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
		if (type == PTX_f32) {
			float *v = (float *)row + lane;
			*v = *v > 0 ? *v < 1 ? *v : 1 : 0;
		} else if (type == PTX_f64) {
			double *v = (double *)row + lane;
			*v = *v > 0 ? *v < 1 ? *v : 1 : 0;
		} else {
			uint16_t *v = (uint16_t *)row + (type == PTX_f16 ? lane : 2 * lane);
			v[0] = saturate_half(v[0]);
			if (type != PTX_f16)
				v[1] = saturate_half(v[1]);
		}
	}
}

void ptx_row_copy(void *to, const void *from, uint32_t mask, uint32_t bytes)
{
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		memcpy((char *)to + lane * bytes, (const char *)from + lane * bytes, bytes);
	}
}

enum ptx_flow ptx_exec_float_mode(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	struct ptx_insn plain = *i;
	enum ptx_type type = i->mode.type;
	uint32_t result = PTX_SCRATCH_ROWS - 1;

	for (uint32_t k = 0; i->mode.ftz && k < i->mode.sources; k++) {
		ptx_flush(type, w->scratch[k], ptx_row(w, i->op[k + 1]));
		plain.op[k + 1] = k * (uint32_t)PTX_ROW_BYTES | PTX_SCRATCH;
	}
	plain.op[0] = result * (uint32_t)PTX_ROW_BYTES | PTX_SCRATCH;

	if (i->mode.round != PTX_RN)
		ptx_round_set(i->mode.round);
	i->inner(w, &plain, mask);
	if (i->mode.round != PTX_RN)
		ptx_round_set(PTX_RN);

	if (i->mode.ftz)
		ptx_flush(type, w->scratch[result], w->scratch[result]);
	if (i->mode.sat)
		saturate(type, w->scratch[result]);
	ptx_row_copy(ptx_row(w, i->op[0]), w->scratch[result], mask, ptx_types[type].bytes);
	return PTX_NEXT;
}
