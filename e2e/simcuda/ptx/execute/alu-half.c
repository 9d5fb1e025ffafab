/* Half precision and bfloat16; the rows are in alu-half.def. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/alu.h"
#include "simcuda/ptx/execute/half.h"

#include <math.h>

static double op_add(double a, double b)
{
	return a + b;
}

static double op_sub(double a, double b)
{
	return a - b;
}

static double op_mul(double a, double b)
{
	return a * b;
}

static double op_min(double a, double b)
{
	if (a == b)
		return signbit(a) ? a : b;
	return a < b || isnan(b) ? a : b;
}

static double op_max(double a, double b)
{
	return -op_min(-a, -b);
}

static double op_min_nan(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : op_min(a, b);
}

static double op_max_nan(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : op_max(a, b);
}

static double op_exp2(double a)
{
	return exp2(a);
}

static double op_tanh(double a)
{
	return tanh(a);
}

#define HALF(t)                                                                              \
	static u16 half1_##t(u16 a, double (*op)(double))                                    \
	{                                                                                    \
		return ptx_to_##t(op(ptx_from_##t(a)), PTX_RN);                              \
	}                                                                                    \
	static u16 half2_##t(u16 a, u16 b, double (*op)(double, double))                     \
	{                                                                                    \
		return ptx_to_##t(op(ptx_from_##t(a), ptx_from_##t(b)), PTX_RN);             \
	}                                                                                    \
	static u16 half3_##t(u16 a, u16 b, u16 c, bool relu)                                 \
	{                                                                                    \
		double sum = ptx_fma_odd(ptx_from_##t(a), ptx_from_##t(b), ptx_from_##t(c)); \
		return ptx_to_##t(relu && sum < 0 ? 0 : sum, PTX_RN);                        \
	}
HALF(f16)
HALF(bf16)

static u32 both(u32 low, u32 high)
{
	return low | high << 16;
}

#define ALU1 PTX_DEFINE_ALU1
#define ALU2 PTX_DEFINE_ALU2
#define ALU3 PTX_DEFINE_ALU3
#include "simcuda/ptx/execute/alu-half.def"
#undef ALU1
#undef ALU2
#undef ALU3

#define ALU1 PTX_LIST_ALU1
#define ALU2 PTX_LIST_ALU2
#define ALU3 PTX_LIST_ALU3
static const struct ptx_plain rows[] = {
#include "simcuda/ptx/execute/alu-half.def"
};

const struct ptx_plain_table ptx_alu_half = {rows, sizeof(rows) / sizeof(rows[0])};
