/* cvt in all its forms, lane by lane: the source becomes a number, exactly; that is rounded once to
 * what the destination can hold. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/half.h"
#include "simcuda/ptx/execute/warp.h"

#include <math.h>

/* The value between source and destination: a floating-point number or an integer. */
struct number {
	bool is_float, is_negative; /* is_negative: of an integer */
	double value;
	uint64_t magnitude;
};

static uint64_t row_bits(const void *row, uint32_t lane, uint32_t bytes)
{
	return bytes == 2   ? ((const uint16_t *)row)[lane]
	       : bytes == 4 ? ((const uint32_t *)row)[lane]
			    : ((const uint64_t *)row)[lane];
}

static void set_row_bits(void *row, uint32_t lane, uint32_t bytes, uint64_t bits)
{
	if (bytes == 2)
		((uint16_t *)row)[lane] = (uint16_t)bits;
	else if (bytes == 4)
		((uint32_t *)row)[lane] = (uint32_t)bits;
	else
		((uint64_t *)row)[lane] = bits;
}

static float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t bits_of_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return isnan(value) ? 0x7fffffff : bits;
}

static struct number read_integer(enum ptx_type type, uint64_t bits)
{
	uint32_t width = ptx_types[type].bytes * 8u;
	int64_t value = (int64_t)(bits << (64 - width));

	if (ptx_types[type].class != PTX_SIGNED)
		return (struct number){.magnitude = bits << (64 - width) >> (64 - width)};
	value >>= 64 - width;
	return (struct number){.is_negative = value < 0,
			       .magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value};
}

static struct number read_number(const struct ptx_convert *c, uint64_t bits)
{
	struct number n = {.is_float = true};

	switch ((enum ptx_type)c->from) {
	case PTX_f16:
		n.value = ptx_from_f16((uint16_t)bits);
		break;
	case PTX_bf16:
		n.value = ptx_from_bf16((uint16_t)bits);
		break;
	case PTX_f32:
		if (c->ftz && !(bits & 0x7f800000))
			bits &= 0x80000000;
		n.value = float_of((uint32_t)bits);
		break;
	case PTX_f64:
		memcpy(&n.value, &bits, sizeof(n.value));
		break;
	default:
		return read_integer(c->from, bits);
	}
	return n;
}

static double round_integral(double value, enum ptx_round round)
{
	switch (round) {
	case PTX_RZ:
		return trunc(value);
	case PTX_RM:
		return floor(value);
	case PTX_RP:
		return ceil(value);
	default:
		return nearbyint(value);
	}
}

/* Out of range: the nearest value that there is. */
static uint64_t float_to_integer(const struct ptx_convert *c, double value)
{
	uint32_t width = ptx_types[c->to].bytes * 8u;
	bool is_signed = ptx_types[c->to].class == PTX_SIGNED;
	double limit = ldexp(1, (int)(is_signed ? width - 1 : width));
	uint64_t top = is_signed ? (1ULL << (width - 1)) - 1 : ~0ULL >> (64 - width);

	if (isnan(value))
		return c->from == PTX_f64 || width == 64 ? 1ULL << (width - 1) : 0;
	value = round_integral(value, c->round);
	if (value >= limit)
		return top;
	if (is_signed)
		return value < -limit ? 0 - (1ULL << (width - 1)) : (uint64_t)(int64_t)value;
	return value <= 0 ? 0 : (uint64_t)value;
}

/* With .sat to the nearest value that there is, else the low bits. */
static uint64_t integer_to_integer(const struct ptx_convert *c, const struct number *n)
{
	uint32_t width = ptx_types[c->to].bytes * 8u;
	bool is_signed = ptx_types[c->to].class == PTX_SIGNED;
	uint64_t top = is_signed ? (1ULL << (width - 1)) - 1 : ~0ULL >> (64 - width);

	if (c->sat && !n->is_negative && n->magnitude > top)
		return top;
	if (c->sat && n->is_negative && !is_signed)
		return 0;
	if (c->sat && n->is_negative && n->magnitude > top + 1)
		return 0 - (top + 1);
	return n->is_negative ? 0 - n->magnitude : n->magnitude;
}

static uint64_t write_integer(const struct ptx_convert *c, const struct number *n)
{
	uint64_t bits = n->is_float ? float_to_integer(c, n->value) : integer_to_integer(c, n);
	uint32_t width = ptx_types[c->to].bytes * 8u;

	/* A wider register gets the sign, or zeros. */
	bits <<= 64 - width;
	return ptx_types[c->to].class == PTX_SIGNED ? (uint64_t)((int64_t)bits >> (64 - width))
						    : bits >> (64 - width);
}

static double limit_float(const struct ptx_convert *c, double value)
{
	if (c->sat)
		return value > 0 ? value < 1 ? value : 1 : 0;
	if (c->relu && value <= 0)
		return 0;
	return value;
}

/* To single precision in the CPU's own rounding mode, which the caller has set. */
static float to_single(const struct number *n)
{
	volatile float result;

	if (n->is_float)
		result = (float)n->value;
	else if (n->is_negative)
		result = (float)(int64_t)(0 - n->magnitude);
	else
		result = (float)n->magnitude;
	return result;
}

static double to_double(const struct number *n)
{
	volatile double result;

	if (n->is_float)
		result = n->value;
	else if (n->is_negative)
		result = (double)(int64_t)(0 - n->magnitude);
	else
		result = (double)n->magnitude;
	return result;
}

/* Exact enough: the destination format is much narrower. */
static double to_odd(const struct number *n)
{
	double value = n->is_float ? n->value : ptx_integer_odd(n->magnitude);

	return n->is_negative ? -value : value;
}

static uint64_t write_float(const struct ptx_convert *c, struct number n)
{
	double wide;
	uint64_t bits;

	if (n.is_float && c->to_integral)
		n.value = round_integral(n.value, c->round);
	if (n.is_float)
		n.value = limit_float(c, n.value);
	/* Nothing is left to round: an integral value, or the same type. */
	enum ptx_round round = c->to_integral ? PTX_RN : (enum ptx_round)c->round;
	switch ((enum ptx_type)c->to) {
	case PTX_f16:
		return ptx_to_f16(limit_float(c, to_odd(&n)), round);
	case PTX_bf16:
		return ptx_to_bf16(limit_float(c, to_odd(&n)), round);
	case PTX_tf32:
		return ptx_to_tf32(n.value, round);
	case PTX_f32:
		ptx_round_set(round);
		bits = bits_of_float(to_single(&n));
		ptx_round_set(PTX_RN);
		if (c->ftz && !(bits & 0x7f800000))
			bits &= 0x80000000;
		if (c->sat && !n.is_float)
			bits = bits_of_float((float)limit_float(c, float_of((uint32_t)bits)));
		return bits;
	default:
		ptx_round_set(round);
		wide = to_double(&n);
		ptx_round_set(PTX_RN);
		wide = limit_float(c, wide);
		memcpy(&bits, &wide, sizeof(bits));
		return bits;
	}
}

/* Two floats to halves beside each other: op[1] is the upper one. */
static enum ptx_flow convert_pair(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_convert *c = &i->convert;
	uint32_t *d = ptx_row(w, i->op[0]);
	const float *high = ptx_row(w, i->op[1]), *low = ptx_row(w, i->op[2]);
	bool half = c->to == PTX_f16x2;

	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		double h = limit_float(c, high[lane]), l = limit_float(c, low[lane]);
		uint32_t upper = half ? ptx_to_f16(h, c->round) : ptx_to_bf16(h, c->round);
		uint32_t lower = half ? ptx_to_f16(l, c->round) : ptx_to_bf16(l, c->round);
		d[lane] = upper << 16 | lower;
	}
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_convert(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_convert *c = &i->convert;
	bool to_integer =
		ptx_types[c->to].class == PTX_SIGNED || ptx_types[c->to].class == PTX_UNSIGNED;

	if (c->to == PTX_f16x2 || c->to == PTX_bf16x2)
		return convert_pair(w, i, mask);
	void *d = ptx_row(w, i->op[0]);
	const void *a = ptx_row(w, i->op[1]);
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		struct number n = read_number(c, row_bits(a, lane, c->from_row));
		uint64_t bits = to_integer ? write_integer(c, &n) : write_float(c, n);
		set_row_bits(d, lane, c->to_row, bits);
	}
	return PTX_NEXT;
}
