/* Integer and bit instructions; the rows are in alu-int.def. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/alu.h"

static s32 saturate_s32(s64 value)
{
	return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (s32)value;
}

/* The low 24 bits as a signed number. */
static s32 low24(s32 value)
{
	return (s32)((u32)value << 8) >> 8;
}

static u32 highest(u64 value)
{
	return value ? 63 - (u32)__builtin_clzll(value) : UINT32_MAX;
}

static u32 shift_amount(u32 bit, u32 top)
{
	return bit == UINT32_MAX ? bit : top - bit;
}

static u64 reverse(u64 v)
{
	v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
	v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
	return __builtin_bswap64(v);
}

/* bfe: the @len bits from @at on; signed ones, and what lies beyond the value, take the top bit. */
static u64 extract(u64 value, u32 bits, u32 at, u32 len, int is_signed)
{
	at &= 0xff;
	len &= 0xff;
	if (len == 0)
		return 0;
	u32 last = at + len - 1 < bits - 1 ? at + len - 1 : bits - 1;
	u64 sign = is_signed && value >> last & 1 ? ~0ULL : 0;
	if (at >= bits)
		return sign;
	u32 have = len < bits - at ? len : bits - at;
	u64 field = value >> at;
	u64 keep = have >= 64 ? ~0ULL : (1ULL << have) - 1;
	return (field & keep) | (sign & ~keep);
}

/* bfi: the low @len bits of @value into @into from bit @at on. */
static u64 insert(u64 value, u64 into, u32 bits, u32 at, u32 len)
{
	at &= 0xff;
	len &= 0xff;
	if (at >= bits || len == 0)
		return into;
	u64 keep = (len >= 64 ? ~0ULL : (1ULL << len) - 1) << at;
	return (into & ~keep) | ((value << at) & keep);
}

static u32 bit_mask(u32 at, u32 len)
{
	if (at > 31)
		return 0;
	return (len > 31 ? UINT32_MAX : (1u << len) - 1) << at;
}

/* fns: the bit that is the |@offset|-th set one from @base on, upwards or downwards. */
static u32 nth_set(u32 bits, u32 base, s32 offset)
{
	if (base > 31)
		return UINT32_MAX;
	if (offset == 0)
		return bits >> base & 1 ? base : UINT32_MAX;
	s32 step = offset > 0 ? 1 : -1;
	for (s32 at = (s32)base; at >= 0 && at < 32; at += step) {
		if (bits >> at & 1)
			offset -= step;
		if (offset == 0)
			return (u32)at;
	}
	return UINT32_MAX;
}

static u32 lookup3(u32 a, u32 b, u32 c, u32 table)
{
	u32 result = 0;

	for (u32 k = 0; k < 8; k++)
		if (table >> k & 1)
			result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	return result;
}

/* Each digit of @select: which of the 8 bytes of @b:@a; its top bit: that byte's sign instead. */
static u32 permute(u32 a, u32 b, u32 select)
{
	u64 bytes = (u64)b << 32 | a;
	u32 result = 0;

	for (u32 k = 0; k < 4; k++) {
		u32 digit = select >> (4 * k) & 15;
		u32 byte = bytes >> (8 * (digit & 7)) & 0xff;
		if (digit & 8)
			byte = byte & 0x80 ? 0xff : 0;
		result |= byte << (8 * k);
	}
	return result;
}

static u32 forward4(u32 first)
{
	return 0x3210 + first * 0x1111;
}

static u32 backward4(u32 first)
{
	u32 select = 0;

	for (u32 k = 0; k < 4; k++)
		select |= ((first - k) & 7) << (4 * k);
	return select;
}

static s32 byte_of(u32 value, u32 k, int is_signed)
{
	u32 byte = value >> (8 * k) & 0xff;

	return is_signed ? (s8)byte : (s32)byte;
}

static s32 dot4(u32 a, int a_signed, u32 b, int b_signed)
{
	s32 sum = 0;

	for (u32 k = 0; k < 4; k++)
		sum += byte_of(a, k, a_signed) * byte_of(b, k, b_signed);
	return sum;
}

static s64 dot2(u32 a, int a_signed, u32 b, int b_signed)
{
	s64 sum = 0;

	for (u32 k = 0; k < 2; k++) {
		u32 half = a >> (16 * k) & 0xffff;
		sum += (a_signed ? (s64)(s16)half : (s64)half) * byte_of(b, k, b_signed);
	}
	return sum;
}

static u32 min_u(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 max_u(u32 a, u32 b)
{
	return a > b ? a : b;
}

static s32 min_s(s32 a, s32 b)
{
	return a < b ? a : b;
}

static s32 max_s(s32 a, s32 b)
{
	return a > b ? a : b;
}

static void set_carry(struct ptx_warp *w, u32 lane, bool carry)
{
	w->carry = (w->carry & ~(1u << lane)) | (u32)carry << lane;
}

static u64 add_carry(struct ptx_warp *w, u32 lane, size_t bits, u64 a, u64 b, u32 carry, bool keep)
{
	unsigned __int128 sum = (unsigned __int128)a + b + carry;

	if (keep)
		set_carry(w, lane, (sum >> bits & 1) != 0);
	return (u64)sum;
}

static u64 sub_borrow(struct ptx_warp *w, u32 lane, size_t bits, u64 a, u64 b, u32 borrow,
		      bool keep)
{
	unsigned __int128 difference = (unsigned __int128)a - b - borrow;

	if (keep)
		set_carry(w, lane, (difference >> bits & 1) != 0);
	return (u64)difference;
}

#define ALU1    PTX_DEFINE_ALU1
#define ALU2    PTX_DEFINE_ALU2
#define ALU3    PTX_DEFINE_ALU3
#define ALU4    PTX_DEFINE_ALU4
#define SERIAL2 PTX_DEFINE_SERIAL2
#define SERIAL3 PTX_DEFINE_SERIAL3
#include "simcuda/ptx/execute/alu-int.def"
#undef ALU1
#undef ALU2
#undef ALU3
#undef ALU4
#undef SERIAL2
#undef SERIAL3

#define ALU1    PTX_LIST_ALU1
#define ALU2    PTX_LIST_ALU2
#define ALU3    PTX_LIST_ALU3
#define ALU4    PTX_LIST_ALU4
#define SERIAL2 PTX_LIST_SERIAL2
#define SERIAL3 PTX_LIST_SERIAL3
static const struct ptx_plain rows[] = {
#include "simcuda/ptx/execute/alu-int.def"
};

const struct ptx_plain_table ptx_alu_int = {rows, sizeof(rows) / sizeof(rows[0])};
