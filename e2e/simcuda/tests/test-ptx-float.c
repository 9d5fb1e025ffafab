/* Floating point: results by hand where they are exact or defined by rounding, and bounds of the
 * ISA where it names an error. */
#include "ptx-fixture.h"

#include <math.h>
#include <stdio.h>

#define N(rows)  rows, sizeof(rows) / sizeof(rows[0])
#define ONE      0x3f800000
#define TWO      0x40000000
#define THREE    0x40400000
#define HALF     0x3f000000
#define INF      0x7f800000
#define NINF     0xff800000
#define NAN32    0x7fffffff
#define TINY     0x00000001 /* the smallest subnormal */
#define NEG(x)   ((x) | 0x80000000)
#define ONE64    0x3ff0000000000000
#define THREE64  0x4008000000000000
#define TINY64   0x0000000000000001
#define NEG64(x) ((x) | 0x8000000000000000)

static void single(void **state)
{
	static const struct fixture_row rows[] = {
		{"add.f32 %r0, %r1, %r2;", {ONE, ONE}, TWO},
		{"add.rn.f32 %r0, %r1, %r2;", {ONE, 0x33800000}, ONE},
		{"add.rp.f32 %r0, %r1, %r2;", {ONE, 0x33800000}, 0x3f800001},
		{"add.rz.f32 %r0, %r1, %r2;", {ONE, NEG(0x33000000)}, 0x3f7fffff},
		{"add.rm.f32 %r0, %r1, %r2;", {ONE, NEG(TINY)}, 0x3f7fffff},
		{"add.rn.f32 %r0, %r1, %r2;", {ONE, NEG(TINY)}, ONE},
		{"add.f32 %r0, %r1, 0f3F800000;", {ONE}, TWO},
		{"add.f32 %r0, %r1, %r2;", {INF, NINF}, NAN32},
		{"add.f32 %r0, %r1, %r2;", {0xffc01234, ONE}, NAN32},
		{"add.f32 %r0, %r1, %r2;", {TINY, TINY}, 2},
		{"add.ftz.f32 %r0, %r1, %r2;", {TINY, TINY}, 0},
		{"add.ftz.f32 %r0, %r1, %r2;", {NEG(TINY), NEG(TINY)}, NEG(0)},
		{"add.sat.f32 %r0, %r1, %r2;", {ONE, ONE}, ONE},
		{"add.sat.f32 %r0, %r1, %r2;", {NEG(ONE), 0}, 0},
		{"add.sat.f32 %r0, %r1, %r2;", {INF, NINF}, 0},
		{"sub.f32 %r0, %r1, %r2;", {ONE, THREE}, NEG(TWO)},
		{"mul.f32 %r0, %r1, %r2;", {TWO, THREE}, 0x40c00000},
		{"mul.ftz.f32 %r0, %r1, %r2;", {0x00800000, HALF}, 0},
		{"mul.f32 %r0, %r1, %r2;", {0x00800000, HALF}, 0x00400000},
		{"fma.rn.f32 %r0, %r1, %r2, %r3;",
		 {0x3f800001, 0x3f800001, NEG(0x3f800002)},
		 0x28800000},
		{"fma.rz.f32 %r0, %r1, %r2, %r3;", {ONE, ONE, NEG(TINY)}, 0x3f7fffff},
		{"fma.rn.sat.f32 %r0, %r1, %r2, %r3;", {TWO, TWO, ONE}, ONE},
		{"mad.rn.f32 %r0, %r1, %r2, %r3;", {TWO, THREE, ONE}, 0x40e00000},
		{"div.rn.f32 %r0, %r1, %r2;", {ONE, THREE}, 0x3eaaaaab},
		{"div.rz.f32 %r0, %r1, %r2;", {ONE, THREE}, 0x3eaaaaaa},
		{"div.rn.f32 %r0, %r1, %r2;", {ONE, 0}, INF},
		{"div.rn.f32 %r0, %r1, %r2;", {0, 0}, NAN32},
		{"div.approx.f32 %r0, %r1, %r2;", {ONE, 0x7e900000}, 0},
		{"div.full.f32 %r0, %r1, %r2;", {ONE, TWO}, HALF},
		{"rcp.rn.f32 %r0, %r1;", {THREE}, 0x3eaaaaab},
		{"rcp.rz.f32 %r0, %r1;", {THREE}, 0x3eaaaaaa},
		{"rcp.approx.ftz.f32 %r0, %r1;", {TINY}, INF},
		{"sqrt.rn.f32 %r0, %r1;", {TWO}, 0x3fb504f3},
		{"sqrt.rp.f32 %r0, %r1;", {TWO}, 0x3fb504f4},
		{"sqrt.rn.f32 %r0, %r1;", {NEG(ONE)}, NAN32},
		{"sqrt.rn.f32 %r0, %r1;", {NEG(0)}, NEG(0)},
		{"rsqrt.approx.f32 %r0, %r1;", {0x40800000}, HALF},
		{"ex2.approx.f32 %r0, %r1;", {THREE}, 0x41000000},
		{"ex2.approx.ftz.f32 %r0, %r1;", {NEG(0x43040000)}, 0},
		{"lg2.approx.f32 %r0, %r1;", {0x41000000}, THREE},
		{"lg2.approx.f32 %r0, %r1;", {0}, NINF},
		{"sin.approx.f32 %r0, %r1;", {NEG(0)}, NEG(0)},
		{"cos.approx.f32 %r0, %r1;", {0}, ONE},
		{"sin.approx.f32 %r0, %r1;", {INF}, NAN32},
		{"tanh.approx.f32 %r0, %r1;", {INF}, ONE},
		{"min.f32 %r0, %r1, %r2;", {0, NEG(0)}, NEG(0)},
		{"max.f32 %r0, %r1, %r2;", {NEG(0), 0}, 0},
		{"min.f32 %r0, %r1, %r2;", {0x7fc00000, ONE}, ONE},
		{"max.f32 %r0, %r1, %r2;", {ONE, 0x7fc00000}, ONE},
		{"max.NaN.f32 %r0, %r1, %r2;", {ONE, 0x7fc00000}, NAN32},
		{"min.f32 %r0, %r1, %r2;", {0x7fc00000, 0x7fc00000}, NAN32},
		{"max.ftz.f32 %r0, %r1, %r2;", {TINY, NEG(ONE)}, 0},
		{"min.f32 %r0, %r1, %r2, %r3;", {THREE, TWO, ONE}, ONE},
		{"abs.f32 %r0, %r1;", {NEG(ONE)}, ONE},
		{"neg.f32 %r0, %r1;", {ONE}, NEG(ONE)},
		{"abs.ftz.f32 %r0, %r1;", {NEG(TINY)}, 0},
		{"copysign.f32 %r0, %r1, %r2;", {NEG(0), ONE}, NEG(ONE)},
	};

	(void)state;
	fixture_check(N(rows));
}

static void wide(void **state)
{
	static const struct fixture_row rows[] = {
		{"add.f64 %d0, %d1, %d2;", {ONE64, ONE64}, 0x4000000000000000},
		{"add.rm.f64 %d0, %d1, %d2;", {ONE64, NEG64(TINY64)}, 0x3fefffffffffffff},
		{"mul.rp.f64 %d0, %d1, %d2;", {TINY64, TINY64}, TINY64},
		{"fma.rn.f64 %d0, %d1, %d2, %d3;", {THREE64, THREE64, ONE64}, 0x4024000000000000},
		{"div.rn.f64 %d0, %d1, %d2;", {ONE64, THREE64}, 0x3fd5555555555555},
		{"div.rp.f64 %d0, %d1, %d2;", {ONE64, THREE64}, 0x3fd5555555555556},
		{"rcp.rn.f64 %d0, %d1;", {THREE64}, 0x3fd5555555555555},
		{"rcp.approx.ftz.f64 %d0, %d1;", {THREE64}, 0x3fd5555500000000},
		{"rcp.approx.ftz.f64 %d0, %d1;", {TINY64}, 0x7ff0000000000000},
		{"sqrt.rn.f64 %d0, %d1;", {0x4000000000000000}, 0x3ff6a09e667f3bcd},
		{"min.f64 %d0, %d1, %d2;", {ONE64, 0x7ff8000000000000}, ONE64},
		{"max.f64 %d0, %d1, 0d4008000000000000;", {ONE64}, THREE64},
		{"abs.f64 %d0, %d1;", {NEG64(ONE64)}, ONE64},
		{"neg.f64 %d0, %d1;", {ONE64}, NEG64(ONE64)},
		{"copysign.f64 %d0, %d1, %d2;", {NEG64(0), ONE64}, NEG64(ONE64)},
	};

	(void)state;
	fixture_check(N(rows));
}

static void comparisons(void **state)
{
	static const struct fixture_row rows[] = {
		{"setp.lt.f32 %p0, %r1, %r2;", {ONE, TWO}, 1},
		{"setp.lt.f32 %p0, %r1, %r2;", {NAN32, TWO}, 0},
		{"setp.ltu.f32 %p0, %r1, %r2;", {NAN32, TWO}, 1},
		{"setp.ne.f32 %p0, %r1, %r2;", {NAN32, TWO}, 0},
		{"setp.neu.f32 %p0, %r1, %r2;", {NAN32, TWO}, 1},
		{"setp.eq.f32 %p0, %r1, %r2;", {0, NEG(0)}, 1},
		{"setp.equ.f32 %p0, %r1, %r2;", {NAN32, 0}, 1},
		{"setp.geu.f32 %p0, %r1, %r2;", {ONE, TWO}, 0},
		{"setp.gtu.f64 %p0, %d1, %d2;", {THREE64, ONE64}, 1},
		{"setp.leu.f64 %p0, %d1, %d2;", {THREE64, ONE64}, 0},
		{"setp.num.f32 %p0, %r1, %r2;", {ONE, NAN32}, 0},
		{"setp.nan.f32 %p0, %r1, %r2;", {ONE, NAN32}, 1},
		{"setp.eq.ftz.f32 %p0, %r1, %r2;", {TINY, 0}, 1},
		{"setp.gt.f16 %p0, %h1, %h2;", {0x4000, 0x3c00}, 1},
		{"set.lt.f32.f32 %r0, %r1, %r2;", {ONE, TWO}, ONE},
		{"set.lt.u32.f64 %r0, %d1, %d2;", {ONE64, THREE64}, 0xffffffff},
		{"testp.finite.f32 %p0, %r1;", {INF}, 0},
		{"testp.infinite.f32 %p0, %r1;", {NINF}, 1},
		{"testp.number.f64 %p0, %d1;", {ONE64}, 1},
		{"testp.notanumber.f32 %p0, %r1;", {NAN32}, 1},
		{"testp.normal.f32 %p0, %r1;", {TINY}, 0},
		{"testp.subnormal.f32 %p0, %r1;", {TINY}, 1},
	};

	(void)state;
	fixture_check(N(rows));
}

/* 1 is 0x3c00 and 0x3f80; the rest follows from the formats. */
static void halves(void **state)
{
	static const struct fixture_row rows[] = {
		{"add.f16 %h0, %h1, %h2;", {0x3c00, 0x3c00}, 0x4000},
		{"add.f16 %h0, %h1, %h2;", {0x7bff, 0x7bff}, 0x7c00},
		{"add.rn.f16 %h0, %h1, %h2;", {0x3c00, 0x1000}, 0x3c00},
		{"add.sat.f16 %h0, %h1, %h2;", {0x3c00, 0x3c00}, 0x3c00},
		{"add.ftz.f16 %h0, %h1, %h2;", {0x0001, 0x0001}, 0},
		{"sub.f16 %h0, %h1, %h2;", {0x3c00, 0x3c00}, 0},
		{"mul.f16 %h0, %h1, %h2;", {0x4000, 0x4200}, 0x4600},
		{"fma.rn.f16 %h0, %h1, %h2, %h3;", {0x3c01, 0x3c01, 0xbc02}, 0x0010},
		{"fma.rn.relu.f16 %h0, %h1, %h2, %h3;", {0x3c00, 0xbc00, 0}, 0},
		{"fma.rn.f16x2 %r0, %r1, %r2, %r3;",
		 {0x3c004000, 0x40004200, 0x3c003c00},
		 0x42004700},
		{"add.f16x2 %r0, %r1, %r2;", {0x3c004000, 0x3c004000}, 0x40004400},
		{"neg.f16x2 %r0, %r1;", {0x3c004000}, 0xbc00c000},
		{"abs.f16 %h0, %h1;", {0xbc00}, 0x3c00},
		{"min.f16 %h0, %h1, %h2;", {0x7e00, 0x3c00}, 0x3c00},
		{"max.NaN.f16 %h0, %h1, %h2;", {0x7e00, 0x3c00}, 0x7fff},
		{"set.lt.f16x2.f16x2 %r0, %r1, %r2;", {0x3c004000, 0x40003c00}, 0x3c000000},
		{"set.ge.u32.f16x2 %r0, %r1, %r2;", {0x3c004000, 0x40003c00}, 0x0000ffff},
		{"set.neu.bf16x2.bf16x2 %r0, %r1, %r2;", {0x3f803f80, 0x3f807fc0}, 0x00003f80},
		{"setp.lt.f16x2 %p0|%p4, %r1, %r2;", {0x40003c00, 0x3c004000}, 1},
		{"setp.gt.f16x2 %p4|%p0, %r1, %r2;", {0x40003c00, 0x3c004000}, 1},
		{"ex2.approx.f16 %h0, %h1;", {0x4200}, 0x4800},
		{"tanh.approx.f16 %h0, %h1;", {0x7c00}, 0x3c00},
		{"fma.rn.bf16 %h0, %h1, %h2, %h3;", {0x3f80, 0x4000, 0x3f80}, 0x4040},
		{"ex2.approx.ftz.bf16 %h0, %h1;", {0x0001}, 0x3f80},
		{"ex2.approx.ftz.bf16x2 %r0, %r1;", {0x40000001}, 0x40803f80},
		{"mul.rn.bf16x2 %r0, %r1, %r2;", {0x3f804000, 0x40004000}, 0x40004080},
	};

	(void)state;
	fixture_check(N(rows));
}

static void conversions(void **state)
{
	static const struct fixture_row rows[] = {
		{"cvt.s64.s32 %d0, %r1;", {0xffffffff}, ~0ULL},
		{"cvt.u64.u32 %d0, %r1;", {0xffffffff}, 0xffffffff},
		{"cvt.u32.u64 %r0, %d1;", {0x1122334455667788}, 0x55667788},
		{"cvt.s32.s8 %r0, %r1;", {0x180}, 0xffffff80},
		{"cvt.u32.u8 %r0, %r1;", {0x180}, 0x80},
		{"cvt.s16.s8 %h0, %h1;", {0x80}, 0xff80},
		{"cvt.u16.u32 %h0, %r1;", {0x12345678}, 0x5678},
		{"cvt.s32.s16 %r0, %h1;", {0x8000}, 0xffff8000},
		{"cvt.s8.s32 %r0, %r1;", {0x80}, 0xffffff80},
		{"cvt.u8.u32 %r0, %r1;", {0x1ff}, 0xff},
		{"cvt.sat.u8.s32 %r0, %r1;", {300}, 255},
		{"cvt.sat.u8.s32 %r0, %r1;", {(uint32_t)-5}, 0},
		{"cvt.sat.s8.s32 %r0, %r1;", {(uint32_t)-300}, 0xffffff80},
		{"cvt.sat.u32.s64 %r0, %d1;", {1ULL << 40}, 0xffffffff},
		{"cvt.sat.s32.u32 %r0, %r1;", {0x80000000}, 0x7fffffff},
		{"cvt.sat.s64.u64 %d0, %d1;", {~0ULL}, INT64_MAX},
		{"cvt.rn.f32.s32 %r0, %r1;", {16777217}, 0x4b800000},
		{"cvt.rp.f32.s32 %r0, %r1;", {16777217}, 0x4b800001},
		{"cvt.rz.f32.u64 %r0, %d1;", {~0ULL}, 0x5f7fffff},
		{"cvt.rn.f32.u64 %r0, %d1;", {~0ULL}, 0x5f800000},
		{"cvt.rm.f32.s64 %r0, %d1;", {(uint64_t)-16777217}, 0xcb800001},
		{"cvt.rn.f64.s64 %d0, %d1;", {(uint64_t)-3}, NEG64(THREE64)},
		{"cvt.rn.f64.u64 %d0, %d1;", {1ULL << 63}, 0x43e0000000000000},
		{"cvt.rn.f32.u16 %r0, %h1;", {3}, THREE},
		{"cvt.rn.f32.s8 %r0, %h1;", {0xff}, NEG(ONE)},
		{"cvt.rzi.s32.f32 %r0, %r1;", {NEG(0x40200000)}, (uint32_t)-2},
		{"cvt.rni.s32.f32 %r0, %r1;", {0x40200000}, 2},
		{"cvt.rni.s32.f32 %r0, %r1;", {0x40600000}, 4},
		{"cvt.rmi.s32.f32 %r0, %r1;", {NEG(0x40200000)}, (uint32_t)-3},
		{"cvt.rpi.s32.f32 %r0, %r1;", {0x40200000}, 3},
		{"cvt.rzi.s32.f32 %r0, %r1;", {INF}, 0x7fffffff},
		{"cvt.rzi.s32.f32 %r0, %r1;", {NINF}, 0x80000000},
		{"cvt.rzi.s32.f32 %r0, %r1;", {NAN32}, 0},
		{"cvt.rzi.u32.f32 %r0, %r1;", {NEG(ONE)}, 0},
		{"cvt.rzi.u64.f32 %d0, %r1;", {INF}, ~0ULL},
		{"cvt.rzi.u8.f32 %r0, %r1;", {0x43960000}, 255},
		{"cvt.rzi.s32.f64 %r0, %d1;", {0x7ff8000000000000}, 0x80000000},
		{"cvt.rzi.s64.f64 %d0, %d1;", {0xc1e0000000200000}, (uint64_t)-2147483649},
		{"cvt.rzi.ftz.s32.f32 %r0, %r1;", {TINY}, 0},
		{"cvt.rpi.s32.f32 %r0, %r1;", {TINY}, 1},
		{"cvt.rpi.ftz.s32.f32 %r0, %r1;", {TINY}, 0},
		{"cvt.f64.f32 %d0, %r1;", {NEG(ONE)}, NEG64(ONE64)},
		{"cvt.rn.f32.f64 %r0, %d1;", {0x3ff0000010000000}, ONE},
		{"cvt.rp.f32.f64 %r0, %d1;", {0x3ff0000000000001}, 0x3f800001},
		{"cvt.rz.f32.f64 %r0, %d1;", {0x7fefffffffffffff}, 0x7f7fffff},
		{"cvt.rn.f32.f64 %r0, %d1;", {0x7fefffffffffffff}, INF},
		{"cvt.rn.ftz.f32.f64 %r0, %d1;", {0x3690000000000000}, 0},
		{"cvt.rni.f32.f32 %r0, %r1;", {0x40200000}, TWO},
		{"cvt.rmi.f64.f64 %d0, %d1;", {0xbfe0000000000000}, NEG64(ONE64)},
		{"cvt.sat.f32.f32 %r0, %r1;", {TWO}, ONE},
		{"cvt.sat.f32.f32 %r0, %r1;", {NAN32}, 0},
		{"cvt.ftz.f32.f32 %r0, %r1;", {TINY}, 0},
		{"cvt.rn.f16.f32 %h0, %r1;", {ONE}, 0x3c00},
		{"cvt.rn.f16.f32 %h0, %r1;", {0x477ff000}, 0x7c00},
		{"cvt.rz.f16.f32 %h0, %r1;", {0x477ff000}, 0x7bff},
		{"cvt.rn.f16.f32 %h0, %r1;", {0x33000000}, 0},
		{"cvt.rn.f16.f32 %h0, %r1;", {0x33000001}, 1},
		{"cvt.rn.f16.f32 %h0, %r1;", {NAN32}, 0x7fff},
		{"cvt.f32.f16 %r0, %h1;", {0x0001}, 0x33800000},
		{"cvt.f32.f16 %r0, %h1;", {0xfc00}, NINF},
		{"cvt.rn.bf16.f32 %h0, %r1;", {0x3f808000}, 0x3f80},
		{"cvt.rn.bf16.f32 %h0, %r1;", {0x3f818000}, 0x3f82},
		{"cvt.f32.bf16 %r0, %h1;", {0x4040}, THREE},
		{"cvt.rn.relu.bf16.f32 %h0, %r1;", {NEG(ONE)}, 0},
		{"cvt.rna.tf32.f32 %r0, %r1;", {0x3f801000}, 0x3f802000},
		{"cvt.rn.f16x2.f32 %r0, %r1, %r2;", {ONE, TWO}, 0x3c004000},
		{"cvt.rn.bf16x2.f32 %r0, %r1, %r2;", {ONE, TWO}, 0x3f804000},
		{"cvt.rn.f16.s32 %h0, %r1;", {2049}, 0x6800},
		{"cvt.rn.bf16.u64 %h0, %d1;", {0x0101000000000001}, 0x5b81},
		{"cvt.rzi.s16.f16 %h0, %h1;", {0xc100}, 0xfffe},
		{"cvt.rn.f64.f32 %d0, %r1;", {TWO}, 0x4000000000000000},
	};

	(void)state;
	fixture_check(N(rows));
}

static float compute(const char *text, float x)
{
	struct fixture_row row = {.text = text};
	uint32_t bits;
	float result;

	memcpy(&bits, &x, sizeof(bits));
	row.in[0] = bits;
	bits = (uint32_t)fixture_compute(&row);
	memcpy(&result, &bits, sizeof(result));
	return result;
}

/* The greatest errors that the ISA allows. */
static void approximations(void **state)
{
	(void)state;
	for (int i = 1; i < 40; i++) {
		float x = (float)i * 0.077f;
		double wide = (double)x;
		assert_true(fabs((double)compute("sin.approx.f32 %r0, %r1;", x) - sin(wide)) <
			    0x1p-20);
		assert_true(fabs((double)compute("cos.approx.f32 %r0, %r1;", x) - cos(wide)) <
			    0x1p-20);
		assert_true(fabs((double)compute("ex2.approx.f32 %r0, %r1;", x) / exp2(wide) - 1) <
			    0x1p-22);
		assert_true(fabs((double)compute("lg2.approx.f32 %r0, %r1;", x) - log2(wide)) <
			    0x1p-21);
		assert_true(fabs((double)compute("rsqrt.approx.f32 %r0, %r1;", x) * sqrt(wide) -
				 1) < 0x1p-22);
		assert_true(fabs((double)compute("rcp.approx.f32 %r0, %r1;", x) * wide - 1) <
			    0x1p-22);
		assert_true(fabs((double)compute("sqrt.approx.f32 %r0, %r1;", x) / sqrt(wide) - 1) <
			    0x1p-22);
		assert_true(fabs((double)compute("tanh.approx.f32 %r0, %r1;", x) / tanh(wide) - 1) <
			    0x1p-10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single),      cmocka_unit_test(wide),
		cmocka_unit_test(comparisons), cmocka_unit_test(halves),
		cmocka_unit_test(conversions), cmocka_unit_test(approximations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
