/* Integer and bit instructions, against values computed by hand from the ISA's definitions. */
#include "ptx-fixture.h"

#define N(rows)  rows, sizeof(rows) / sizeof(rows[0])
#define MINUS(x) ((uint64_t) - (int64_t)(x))
#define M32(x)   ((uint32_t) - (int32_t)(x))

static void arithmetic(void **state)
{
	static const struct fixture_row rows[] = {
		{"add.u16 %h0, %h1, %h2;", {0xffff, 2}, 1},
		{"add.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x80000000},
		{"add.u64 %d0, %d1, -1;", {5}, 4},
		{"add.sat.s32 %r0, %r1, %r2;", {0x7fffffff, 1}, 0x7fffffff},
		{"add.sat.s32 %r0, %r1, %r2;", {0x80000000, M32(1)}, 0x80000000},
		{"sub.sat.s32 %r0, %r1, %r2;", {0x80000000, 1}, 0x80000000},
		{"sub.u32 %r0, %r1, %r2;", {3, 5}, 0xfffffffe},
		{"sub.s64 %d0, %d1, %d2;", {3, 5}, MINUS(2)},
		{"mul.lo.u16 %h0, %h1, %h2;", {0xffff, 0xffff}, 1},
		{"mul.lo.s32 %r0, %r1, %r2;", {M32(3), 7}, M32(21)},
		{"mul.lo.u64 %d0, %d1, %d2;", {0x100000001, 0x100000001}, 0x200000001},
		{"mul.hi.u32 %r0, %r1, %r2;", {0xffffffff, 0xffffffff}, 0xfffffffe},
		{"mul.hi.s32 %r0, %r1, %r2;", {0xffffffff, 0xffffffff}, 0},
		{"mul.hi.s32 %r0, %r1, %r2;", {0x80000000, 2}, 0xffffffff},
		{"mul.hi.u64 %d0, %d1, %d2;", {~0ULL, ~0ULL}, ~0ULL - 1},
		{"mul.hi.s64 %d0, %d1, %d2;", {MINUS(1), 1}, ~0ULL},
		{"mul.hi.u16 %h0, %h1, %h2;", {0xffff, 0xffff}, 0xfffe},
		{"mul.hi.s16 %h0, %h1, %h2;", {0x8000, 2}, 0xffff},
		{"mul.wide.u16 %r0, %h1, %h2;", {0xffff, 0xffff}, 0xfffe0001},
		{"mul.wide.s16 %r0, %h1, %h2;", {0xffff, 2}, M32(2)},
		{"mul.wide.u32 %d0, %r1, %r2;", {0xffffffff, 2}, 0x1fffffffe},
		{"mul.wide.s32 %d0, %r1, 4;", {M32(2)}, MINUS(8)},
		{"mad.lo.s32 %r0, %r1, %r2, %r3;", {3, 4, 5}, 17},
		{"mad.lo.u64 %d0, %d1, %d2, %d3;", {3, 4, 5}, 17},
		{"mad.hi.u32 %r0, %r1, %r2, %r3;", {0x80000000, 6, 10}, 13},
		{"mad.hi.s32 %r0, %r1, %r2, %r3;", {0x80000000, 2, 10}, 9},
		{"mad.hi.sat.s32 %r0, %r1, %r2, %r3;",
		 {0x7fffffff, 0x7fffffff, 0x7fffffff},
		 0x7fffffff},
		{"mad.wide.s32 %d0, %r1, %r2, %d3;", {M32(3), 4, 5}, MINUS(7)},
		{"mad.wide.u32 %d0, %r1, %r2, %d3;", {0xffffffff, 2, 1}, 0x1ffffffff},
		{"mad.wide.s16 %r0, %h1, %h2, %r3;", {0xffff, 2, 1}, M32(1)},
		{"mul24.lo.u32 %r0, %r1, %r2;", {0xff000003, 5}, 15},
		{"mul24.hi.u32 %r0, %r1, %r2;", {0xffffff, 0xffffff}, 0xfffffe00},
		{"mul24.lo.s32 %r0, %r1, %r2;", {0xffffff, 5}, M32(5)},
		{"mad24.lo.s32 %r0, %r1, %r2, %r3;", {0xffffff, 5, 7}, 2},
		{"div.u32 %r0, %r1, %r2;", {0xffffffff, 10}, 429496729},
		{"div.s32 %r0, %r1, %r2;", {M32(7), 2}, M32(3)},
		{"div.s32 %r0, %r1, %r2;", {0x80000000, M32(1)}, 0x80000000},
		{"div.u32 %r0, %r1, %r2;", {7, 0}, 0xffffffff},
		{"div.s64 %d0, %d1, %d2;", {MINUS(100), 7}, MINUS(14)},
		{"rem.s32 %r0, %r1, %r2;", {M32(7), 2}, M32(1)},
		{"rem.s32 %r0, %r1, %r2;", {0x80000000, M32(1)}, 0},
		{"rem.u64 %d0, %d1, %d2;", {1000, 7}, 6},
		{"div.s16 %h0, %h1, %h2;", {0x8000, 0xffff}, 0x8000},
		{"abs.s32 %r0, %r1;", {M32(5)}, 5},
		{"abs.s32 %r0, %r1;", {0x80000000}, 0x80000000},
		{"abs.s64 %d0, %d1;", {MINUS(5)}, 5},
		{"neg.s16 %h0, %h1;", {5}, 0xfffb},
		{"neg.s64 %d0, %d1;", {5}, MINUS(5)},
		{"min.s32 %r0, %r1, %r2;", {M32(1), 1}, 0xffffffff},
		{"min.u32 %r0, %r1, %r2;", {M32(1), 1}, 1},
		{"max.s64 %d0, %d1, %d2;", {MINUS(1), 1}, 1},
		{"max.u16 %h0, %h1, %h2;", {0xffff, 1}, 0xffff},
		{"min.relu.s32 %r0, %r1, %r2;", {M32(4), 3}, 0},
		{"max.relu.s32 %r0, %r1, %r2;", {M32(4), 3}, 3},
		{"sad.s32 %r0, %r1, %r2, %r3;", {M32(4), 3, 10}, 17},
		{"sad.u32 %r0, %r1, %r2, %r3;", {4, 9, 10}, 15},
		{"add.u16x2 %r0, %r1, %r2;", {0x0001ffff, 0x00020002}, 0x00030001},
		{"min.s16x2 %r0, %r1, %r2;", {0xffff0005, 0x00010003}, 0xffff0003},
		{"max.u16x2 %r0, %r1, %r2;", {0xffff0005, 0x00010003}, 0xffff0005},
		{"dp4a.u32.u32 %r0, %r1, %r2, %r3;", {0x01020304, 0x05060708, 100}, 170},
		{"dp4a.s32.s32 %r0, %r1, %r2, %r3;", {0xff020304, 0x05060708, 100}, 160},
		{"dp4a.u32.s32 %r0, %r1, %r2, %r3;", {0xff000000, 0xff000000, 0}, M32(255)},
		{"dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;", {0x00020003, 0x04030201, 1}, 8},
		{"dp2a.hi.u32.u32 %r0, %r1, %r2, %r3;", {0x00020003, 0x04030201, 1}, 18},
	};

	(void)state;
	fixture_check(N(rows));
}

static void bits(void **state)
{
	static const struct fixture_row rows[] = {
		{"and.b32 %r0, %r1, %r2;", {0xff00ff00, 0x0ff00ff0}, 0x0f000f00},
		{"or.b16 %h0, %h1, %h2;", {0xf0, 0x0f}, 0xff},
		{"xor.b64 %d0, %d1, %d2;", {0xff, 0xf0}, 0x0f},
		{"not.b32 %r0, %r1;", {0xf}, 0xfffffff0},
		{"not.b16 %h0, %h1;", {0xf}, 0xfff0},
		{"cnot.b32 %r0, %r1;", {0}, 1},
		{"cnot.b64 %d0, %d1;", {7}, 0},
		{"and.pred %p0, %p1, %p2;", {1, 1}, 1},
		{"or.pred %p0, %p1, %p2;", {0, 1}, 1},
		{"xor.pred %p0, %p1, %p2;", {1, 1}, 0},
		{"not.pred %p0, %p1;", {0}, 1},
		{"mov.pred %p0, %p1;", {1}, 1},
		{"shl.b32 %r0, %r1, %r2;", {1, 31}, 0x80000000},
		{"shl.b32 %r0, %r1, %r2;", {1, 32}, 0},
		{"shl.b64 %d0, %d1, %r2;", {1, 63}, 1ULL << 63},
		{"shl.b64 %d0, %d1, %r2;", {1, 0x100000000}, 1},
		{"shr.u32 %r0, %r1, %r2;", {0x80000000, 31}, 1},
		{"shr.u32 %r0, %r1, 40;", {0x80000000}, 0},
		{"shr.s32 %r0, %r1, %r2;", {0x80000000, 40}, 0xffffffff},
		{"shr.s64 %d0, %d1, %r2;", {1ULL << 63, 63}, ~0ULL},
		{"shr.b16 %h0, %h1, %r2;", {0x8000, 15}, 1},
		{"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000000, 1, 33}, 3},
		{"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", {0x80000000, 1, 4}, 0x18000000},
		{"shf.l.clamp.b32 %r0, %r1, %r2, %r3;", {0x12345678, 1, 40}, 0x12345678},
		{"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", {0x12345678, 1, 32}, 1},
		{"shf.r.clamp.b32 %r0, %r1, %r2, %r3;", {0x12345678, 1, 0}, 0x12345678},
		{"popc.b32 %r0, %r1;", {0xf0f0}, 8},
		{"popc.b64 %r0, %d1;", {~0ULL}, 64},
		{"clz.b32 %r0, %r1;", {0}, 32},
		{"clz.b64 %r0, %d1;", {1}, 63},
		{"bfind.u32 %r0, %r1;", {0x8000}, 15},
		{"bfind.u32 %r0, %r1;", {0}, 0xffffffff},
		{"bfind.s32 %r0, %r1;", {M32(1)}, 0xffffffff},
		{"bfind.s32 %r0, %r1;", {M32(256)}, 7},
		{"bfind.shiftamt.u32 %r0, %r1;", {0x8000}, 16},
		{"bfind.u64 %r0, %d1;", {1ULL << 40}, 40},
		{"brev.b32 %r0, %r1;", {0x1}, 0x80000000},
		{"brev.b64 %d0, %d1;", {0x3}, 3ULL << 62},
		{"bfe.u32 %r0, %r1, %r2, %r3;", {0xabcd1234, 8, 8}, 0x12},
		{"bfe.s32 %r0, %r1, %r2, %r3;", {0xabcd8234, 8, 8}, 0xffffff82},
		{"bfe.s32 %r0, %r1, %r2, %r3;", {0x80000000, 28, 16}, 0xfffffff8},
		{"bfe.u32 %r0, %r1, %r2, %r3;", {0xffffffff, 28, 16}, 0xf},
		{"bfe.u32 %r0, %r1, %r2, %r3;", {0xffffffff, 0, 0}, 0},
		{"bfe.u32 %r0, %r1, %r2, %r3;", {0xffffffff, 32, 4}, 0},
		{"bfe.s32 %r0, %r1, %r2, %r3;", {0x80000000, 40, 4}, 0xffffffff},
		{"bfe.u64 %d0, %d1, %r2, %r3;", {0xabcd000000000000, 48, 64}, 0xabcd},
		{"bfi.b32 %r0, %r1, %r2, %r3, %r4;", {0xff, 0, 4, 4}, 0xf0},
		{"bfi.b32 %r0, %r1, %r2, %r3, %r4;", {0xff, 0x12345678, 28, 8}, 0xf2345678},
		{"bfi.b32 %r0, %r1, %r2, %r3, %r4;", {0xff, 5, 32, 8}, 5},
		{"bfi.b64 %d0, %d1, %d2, %r3, %r4;", {0xff, 0, 32, 16}, 0xff00000000},
		{"bmsk.clamp.b32 %r0, %r1, %r2;", {4, 8}, 0xff0},
		{"bmsk.clamp.b32 %r0, %r1, %r2;", {4, 40}, 0xfffffff0},
		{"szext.clamp.s32 %r0, %r1, %r2;", {0xff, 8}, 0xffffffff},
		{"szext.wrap.u32 %r0, %r1, %r2;", {0xfff, 40}, 0xff},
		{"fns.b32 %r0, %r1, %r2, %r3;", {0xf0, 0, 2}, 5},
		{"fns.b32 %r0, %r1, %r2, %r3;", {0xf0, 31, M32(1)}, 7},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", {0xf0, 0xcc, 0xaa}, 0xf0 ^ 0xcc ^ 0xaa},
		{"lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", {0xf0, 0xcc, 0xaa}, 0xe8},
		{"prmt.b32 %r0, %r1, %r2, 0x7610;", {0x33221100, 0x77665544}, 0x77661100},
		{"prmt.b32 %r0, %r1, %r2, 0x0009;", {0x00008000, 0}, 0x000000ff},
		{"prmt.b32.f4e %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 1}, 0x44332211},
		{"prmt.b32.b4e %r0, %r1, %r2, %r3;", {0x33221100, 0x77665544, 1}, 0x66770011},
		{"prmt.b32.rc8 %r0, %r1, %r2, %r3;", {0x33221100, 0, 2}, 0x22222222},
		{"prmt.b32.ecl %r0, %r1, %r2, %r3;", {0x33221100, 0, 2}, 0x33222222},
		{"prmt.b32.ecr %r0, %r1, %r2, %r3;", {0x33221100, 0, 1}, 0x11111100},
		{"prmt.b32.rc16 %r0, %r1, %r2, %r3;", {0x33221100, 0, 1}, 0x33223322},
	};

	(void)state;
	fixture_check(N(rows));
}

static void extended_precision(void **state)
{
	static const struct fixture_row rows[] = {
		{"add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", {0xffffffff, 1, 5}, 6},
		{"add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", {0xfffffffe, 1, 5}, 5},
		{"add.cc.u64 %d4, %d1, %d2; addc.u64 %d0, %d3, 0;", {~0ULL, 1, 5}, 6},
		{"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;", {1, 2, 5}, 4},
		{"add.cc.u32 %r4, %r1, %r2; addc.cc.u32 %r4, %r1, 0; addc.u32 %r0, 0, 0;",
		 {0xffffffff, 1},
		 1},
		{"mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;",
		 {0xffffffff, 0xffffffff, 0xffffffff},
		 0xffffffff},
	};

	(void)state;
	fixture_check(N(rows));
}

static void moves(void **state)
{
	static const struct fixture_row rows[] = {
		{"mov.b64 %d0, {%r1, %r2};", {0x11111111, 0x22222222}, 0x2222222211111111},
		{"mov.b64 {%r4, %r0}, %d1;", {0x2222222211111111}, 0x22222222},
		{"mov.b64 {_, %r0}, %d1;", {0x2222222211111111}, 0x22222222},
		{"mov.b64 {%r0, _}, %d1;", {0x2222222211111111}, 0x11111111},
		{"mov.b32 %r0, {%h1, %h2};", {0x1111, 0x2222}, 0x22221111},
		{"mov.b32 {%h0, %h4}, %r1;", {0x22221111}, 0x1111},
		{"mov.b64 %d0, {%h1, %h2, %h3, %h4};", {1, 2, 3, 4}, 0x0004000300020001},
		{"mov.u32 %r0, (1 << 4 | 3) * 2 - -1;", {0}, 39},
		{"mov.s32 %r0, -1;", {0}, 0xffffffff},
		{"mov.f32 %r0, 0f3F800000;", {0}, 0x3f800000},
		{"mov.f64 %d0, 1.5;", {0}, 0x3ff8000000000000},
		{"mov.f32 %r0, 1.5;", {0}, 0x3fc00000},
		{"mov.u32 %r0, WARP_SZ;", {0}, 32},
		{"mov.u64 %d0, 0b101U;", {0}, 5},
		{"selp.b32 %r0, %r1, %r2, %p3;", {5, 6, 1}, 5},
		{"selp.f64 %d0, %d1, %d2, %p3;", {5, 6, 0}, 6},
		{"selp.b16 %h0, 7, %h2, %p3;", {5, 6, 1}, 7},
		{"slct.s32.s32 %r0, %r1, %r2, %r3;", {5, 6, M32(1)}, 6},
		{"slct.u64.f32 %d0, %d1, %d2, %r3;", {5, 6, 0x80000000}, 5},
		{"setp.lt.s32 %p0, %r1, %r2;", {M32(1), 0}, 1},
		{"setp.lt.u32 %p0, %r1, %r2;", {M32(1), 0}, 0},
		{"setp.hs.u64 %p0, %d1, %d2;", {5, 5}, 1},
		{"setp.eq.b16 %p0, %h1, %h2;", {5, 0x10005}, 1},
		{"setp.eq.and.s32 %p0, %r1, 5, %p2;", {5, 0}, 0},
		{"setp.eq.or.s32 %p0, %r1, 5, !%p2;", {4, 0}, 1},
		{"setp.eq.xor.s32 %p0|%p4, %r1, 5, %p2;", {5, 0}, 1},
		{"setp.eq.and.s32 %p4|%p0, %r1, 5, %p2;", {4, 1}, 1},
		{"set.le.u32.s32 %r0, %r1, %r2;", {M32(1), 0}, 0xffffffff},
		{"set.gt.f32.u32 %r0, %r1, %r2;", {1, 0}, 0x3f800000},
		{"@%p1 mov.u32 %r0, 7;", {1}, 7},
		{"@!%p1 mov.u32 %r0, 7;", {1}, 0},
		{"mov.u32 %r0, %laneid;", {0}, 0},
		{"mov.u32 %r0, %lanemask_ge;", {0}, 0xffffffff},
		{"mov.u32 %r0, %nctaid.x;", {0}, 1},
		{"mov.u64 %d0, %ntid.z;", {0}, 1},
		{"mov.u32 %r0, %gridid;", {0}, 0},
		{"mov.u16 %h0, %ntid.x;", {0}, 1},
		{"mov.u32 %r0, %nsmid;", {0}, 4},
		{"mov.u32 %r0, %envreg31;", {0}, 0},
	};

	(void)state;
	fixture_check(N(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(bits),
		cmocka_unit_test(extended_precision),
		cmocka_unit_test(moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
