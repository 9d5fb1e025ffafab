/* Floating-point instructions; the rows are in alu-float.def. Compiled without contraction: a
 * multiplication and an addition are two roundings unless PTX says fma. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/alu.h"

/* Single precision makes one NaN only; double precision keeps payloads, as x86 does. */
static inline f32 clean_f32(f32 value)
{
	const union {
		u32 bits;
		f32 value;
	} nan = {.bits = 0x7fffffff};

	return value != value ? nan.value : value;
}

static inline f64 clean_f64(f64 value)
{
	return value;
}

/* div.approx: a divisor beyond 2^126 gives 0. */
static inline f32 divide_approximately(f32 a, f32 b)
{
	if (__builtin_fabsf(b) > 0x1p126f && !__builtin_isinf(a))
		return b != b ? b : a != a ? a : 0 * a;
	return a / b;
}

/* The 64-bit approximations know the upper half of a number only. */
static inline f64 coarse(f64 value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	bits &= 0xffffffff00000000;
	memcpy(&value, &bits, sizeof(bits));
	return value;
}

static inline f32 smaller_f32(f32 a, f32 b)
{
	if (a == b)
		return __builtin_signbit(a) ? a : b;
	return a < b || b != b ? a : b;
}

static inline f64 smaller_f64(f64 a, f64 b)
{
	if (a == b)
		return __builtin_signbit(a) ? a : b;
	return a < b || b != b ? a : b;
}

#define ALU1  PTX_DEFINE_ALU1
#define ALU2  PTX_DEFINE_ALU2
#define ALU3  PTX_DEFINE_ALU3
#define FUSED PTX_DEFINE_FUSED
#include "simcuda/ptx/execute/alu-float.def"
#undef ALU1
#undef ALU2
#undef ALU3
#undef FUSED

#define ALU1  PTX_LIST_ALU1
#define ALU2  PTX_LIST_ALU2
#define ALU3  PTX_LIST_ALU3
#define FUSED PTX_LIST_FUSED
static const struct ptx_plain rows[] = {
#include "simcuda/ptx/execute/alu-float.def"
};

const struct ptx_plain_table ptx_alu_float = {rows, sizeof(rows) / sizeof(rows[0])};
