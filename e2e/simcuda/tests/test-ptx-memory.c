/* State spaces, addresses and access checks; atomic operations; variables and their initial values.
 */
#include "ptx-fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL(body)                                                               \
	".visible .entry k(.param .u64 out, .param .align 8 .b8 more[24])\n{\n"    \
	".reg .pred %p<5>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n" \
	"ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n" body "\nret;\n}\n"

struct arguments {
	uint64_t *out;
	uint8_t more[24];
};

#define ARGUMENTS(to) ((struct arguments){to, {1, 2, 3, 4, 5, 6, 7, 0x88, 9}})

static int run(const char *text, uint32_t threads, uint32_t dynamic, uint64_t *out,
	       struct ptx_error *error)
{
	return fixture_block(text, threads, dynamic, &ARGUMENTS(out), error);
}

/* Runs one thread and compares out[0]. */
static void must_give(const char *text, uint64_t want)
{
	_Alignas(32) uint64_t out[8] = {0};

	fixture_block_runs(text, 1, 64, &ARGUMENTS(out));
	if (out[0] != want)
		fail_msg("%s gives 0x%llx, not 0x%llx", text, (unsigned long long)out[0],
			 (unsigned long long)want);
}

static void must_fault(const char *text, const char *message)
{
	_Alignas(32) uint64_t out[8] = {0};

	fixture_block_faults(text, 1, 64, &ARGUMENTS(out), message);
}

static void parameters(void **state)
{
	(void)state;
	must_give(PTX_HEAD KERNEL("ld.param.u8 %r2, [more+7]; st.global.u32 [%d1], %r2;"), 0x88);
	must_give(PTX_HEAD KERNEL("ld.param.s8 %d2, [more+7]; st.global.u64 [%d1], %d2;"),
		  0xffffffffffffff88);
	must_give(PTX_HEAD KERNEL("ld.param.v2.u32 {%r2, %r3}, [more]; st.global.u32 [%d1], %r3;"),
		  0x88070605);
	must_give(
		PTX_HEAD KERNEL("mov.u64 %d2, more; add.u64 %d2, %d2, 2; ld.param.u16 %r2, [%d2];\n"
				"st.global.u32 [%d1], %r2;"),
		0x0403);
	must_give(PTX_HEAD KERNEL("mov.u64 %d2, more; cvta.param.u64 %d2, %d2;\n"
				  "ld.u32 %r2, [%d2+4]; st.global.u32 [%d1], %r2;"),
		  0x88070605);
	must_fault(PTX_HEAD KERNEL("ld.param.u64 %d2, [more+24]; st.global.u64 [%d1], %d2;"),
		   "no parameter");
	must_fault(PTX_HEAD KERNEL("mov.u64 %d2, 1024; ld.param.u32 %r2, [%d2];"), "no parameter");
}

static void widths_and_vectors(void **state)
{
	(void)state;
	must_give(PTX_HEAD KERNEL("st.global.u64 [%d1], 0x8877665544332211;\n"
				  "ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%d1];\n"
				  "st.global.v4.u16 [%d1], {%h4, %h3, %h2, %h1};"),
		  0x2211443366558877);
	must_give(PTX_HEAD KERNEL("st.global.u64 [%d1+8], 0xff80; ld.global.s8 %h1, [%d1+8];\n"
				  "st.global.u16 [%d1], %h1;"),
		  0xff80);
	must_give(PTX_HEAD KERNEL("mov.u32 %r2, 0x12345678; st.global.u8 [%d1+1], %r2;"), 0x7800);
	must_give(
		PTX_HEAD KERNEL(
			"st.global.v4.u64 [%d1], {1, 2, 3, 4};\n"
			"ld.global.nc.L1::no_allocate.L2::128B.v4.b64 {%d2, %d3, %d4, _}, [%d1];\n"
			"st.global.u64 [%d1], %d4;"),
		3);
	must_fault(PTX_HEAD KERNEL("ld.global.u32 %r2, [%d1+2];"), "misaligned");
	must_fault(PTX_HEAD KERNEL("ld.global.v2.u32 {%r2, %r3}, [%d1+4];"), "misaligned");
}

static void shared_memory(void **state)
{
	(void)state;
	must_give(PTX_HEAD ".shared .align 4 .b8 pad[12]; .shared .align 8 .u64 value;\n" KERNEL(
			  "mov.u32 %r2, value; st.shared.u32 [pad+8], 7; st.shared.u64 [%r2], 9;\n"
			  "ld.shared.u32 %r3, [pad+8]; cvt.u64.u32 %d2, %r3; ld.shared.u64 %d3, "
			  "[value];\n"
			  "mad.lo.u64 %d2, %d3, 100, %d2; st.global.u64 [%d1], %d2;"),
		  907);
	/* Generic addresses of it, and back. */
	must_give(PTX_HEAD ".shared .align 8 .b8 area[64];\n" KERNEL(
			  "cvta.shared.u64 %d2, area; st.u64 [%d2+8], 5; cvta.to.shared.u64 %d3, "
			  "%d2;\n"
			  "ld.shared.u64 %d4, [%d3+8]; isspacep.shared %p1, %d2;\n"
			  "isspacep.global %p2, %d2; selp.u64 %d5, 10, 0, %p1; add.u64 %d4, %d4, "
			  "%d5;\n"
			  "selp.u64 %d5, 100, 0, %p2; add.u64 %d4, %d4, %d5; st.global.u64 [%d1], "
			  "%d4;"),
		  15);
	/* Placed behind the kernel's own shared memory. */
	must_give(PTX_HEAD
		  ".extern .shared .align 16 .b8 dynamic[];\n.shared .b8 own[20];\n" KERNEL(
			  "st.shared.u8 [own+19], 3; mov.u32 %r2, dynamic; st.shared.u32 "
			  "[dynamic+60], %r2;\n"
			  "ld.shared.u32 %r3, [%r2+60]; mov.u32 %r4, %dynamic_smem_size;\n"
			  "mad.lo.u32 %r3, %r4, 1000, %r3; st.global.u32 [%d1], %r3;"),
		  64032);
	must_fault(PTX_HEAD
		   ".extern .shared .b8 dynamic[];\n" KERNEL("st.shared.u32 [dynamic+64], 1;"),
		   "no shared memory behind address 0x40");
	must_fault(PTX_HEAD KERNEL("mov.u64 %d2, -8; ld.shared.u64 %d3, [%d2];"),
		   "no shared memory");
}

static void function_shared(void **state)
{
	/* A function's variable has one place for both kernels, whose own lie behind it. */
	static const char text[] = PTX_HEAD
		".shared .align 8 .b8 common[16]; .shared .align 8 .b8 mine[8]; .shared .u32 "
		"theirs;\n"
		".func put(.param .b32 v) { .reg .b32 %r; ld.param.b32 %r, [v];\n"
		"st.shared.u32 [common+4], %r; ret; }\n" KERNEL(
			"st.shared.u64 [mine], 77;\n"
			"{ .param .b32 a; st.param.b32 [a], 5; call put, (a); }\n"
			"ld.shared.u32 %r2, [common+4]; ld.shared.u32 %r3, [mine];\n"
			"mad.lo.u32 %r2, %r3, 10, %r2; st.global.u32 [%d1], %r2;") ".visible "
										   ".entry other() "
										   "{ "
										   "st.shared.u32 "
										   "[theirs], 1; "
										   "ret; }\n";
	struct ptx_module *module = fixture_load(text);

	(void)state;
	assert_int_equal(ptx_kernel_static_shared(ptx_module_kernel(module, "k")), 24);
	assert_int_equal(ptx_kernel_static_shared(ptx_module_kernel(module, "other")), 4);
	ptx_module_free(module);
	must_give(text, 775);
}

static void local_memory(void **state)
{
	uint64_t out[64];
	struct ptx_error error;

	(void)state;
	assert_int_equal(
		run(PTX_HEAD KERNEL(
			    ".local .align 8 .b8 mine[32]; .reg .b64 %sp, %spl;\n"
			    "mov.u64 %spl, mine; cvta.local.u64 %sp, %spl; cvt.u64.u32 %d2, %r1;\n"
			    "st.local.u64 [%spl+8], %d2; st.u64 [%sp+16], %d2; bar.sync 0;\n"
			    "ld.u64 %d3, [%sp+8]; ld.local.u64 %d4, [mine+16]; add.u64 %d3, %d3, "
			    "%d4;\n"
			    "isspacep.local %p1, %sp; @!%p1 trap;\n"
			    "shl.b64 %d2, %d2, 3; add.u64 %d1, %d1, %d2; st.global.u64 [%d1], "
			    "%d3;"),
		    64, 0, out, &error),
		0);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(out[i], 2 * i);
	must_fault(PTX_HEAD KERNEL(
			   ".local .b8 mine[32]; mov.u64 %d2, mine; ld.local.u8 %r2, [%d2+32];"),
		   "no local memory");
	/* Another thread's, by a generic address. */
	must_fault(
		PTX_HEAD KERNEL(".local .b8 mine[32]; mov.u64 %d2, mine; cvta.local.u64 %d2, %d2;\n"
				"ld.u8 %r2, [%d2+32];"),
		"behind address");
}

static const uint8_t *allowed;
static size_t allowed_bytes;
static _Atomic int asked;

static bool only_allowed(uintptr_t address, size_t size)
{
	asked++;
	return address >= (uintptr_t)allowed && size <= allowed_bytes &&
	       address - (uintptr_t)allowed <= allowed_bytes - size;
}

static void wild_addresses(void **state)
{
	uint64_t out[64];

	(void)state;
	must_fault(PTX_HEAD KERNEL("mov.u64 %d2, 0; ld.global.u32 %r2, [%d2];"),
		   "behind address 0x0");
	must_fault(PTX_HEAD KERNEL("ld.u32 %r2, [8];"), "behind address 0x8");
	must_fault(PTX_HEAD KERNEL("mov.u64 %d2, -4; st.global.u32 [%d2], 1;"), "behind address");

	allowed = (const uint8_t *)out;
	allowed_bytes = sizeof(out);
	ptx_set_address_check(only_allowed);
	struct ptx_error error;
	/* One address check for a whole warp. */
	asked = 0;
	assert_int_equal(run(PTX_HEAD KERNEL("mul.wide.u32 %d2, %r1, 8; add.u64 %d2, %d1, %d2;\n"
					     "st.global.u64 [%d2], %d2;"),
			     32, 0, out, &error),
			 0);
	assert_int_equal(asked, 1);
	/* The last thread is one too many. */
	assert_int_equal(run(PTX_HEAD KERNEL("mul.wide.u32 %d2, %r1, 8; add.u64 %d2, %d1, %d2;\n"
					     "st.global.u64 [%d2], %d2;"),
			     65, 0, out, &error),
			 -EFAULT);
	assert_int_equal(error.line, 9);
	/* The block's own memory is no global memory, and parameters cannot be written. */
	assert_int_equal(
		run(PTX_HEAD ".shared .u32 own;\n" KERNEL(
			    "mov.u64 %d2, own; cvta.shared.u64 %d2, %d2; st.global.u32 [%d2], 1;"),
		    1, 0, out, &error),
		-EFAULT);
	assert_int_equal(run(PTX_HEAD KERNEL("mov.u64 %d2, more; cvta.param.u64 %d2, %d2;\n"
					     "ld.u32 %r2, [%d2]; st.u32 [%d2], 1;"),
			     1, 0, out, &error),
			 -EFAULT);
	assert_int_equal(error.line, 9);
	/* Accesses far apart are checked one by one: the first and the last element are allowed. */
	assert_int_equal(run(PTX_HEAD KERNEL("st.global.u64 [%d1+512], 1;"), 1, 0, out, &error),
			 -EFAULT);
	assert_int_equal(
		run(PTX_HEAD KERNEL("atom.global.add.u32 %r2, [%d1+512], 1;"), 1, 0, out, &error),
		-EFAULT);
	/* A module's own variables need no check. */
	asked = 0;
	assert_int_equal(run(PTX_HEAD ".global .u64 mine;\n" KERNEL("st.global.u64 [mine], 1;"), 1,
			     0, out, &error),
			 0);
	assert_int_equal(asked, 0);
	ptx_set_address_check(NULL);
}

/* Operation, then the old value and the new one. */
static void atomics(void **state)
{
	static const struct {
		const char *operation;
		uint64_t start, b, c, want;
	} rows[] = {
		{"add.u32", 5, 7, 0, 12},
		{"add.s32", 5, 0xffffffff, 0, 4},
		{"add.u64", 5, 1ULL << 40, 0, (1ULL << 40) + 5},
		{"inc.u32", 5, 5, 0, 0},
		{"inc.u32", 4, 5, 0, 5},
		{"dec.u32", 0, 5, 0, 5},
		{"dec.u32", 9, 5, 0, 5},
		{"dec.u32", 3, 5, 0, 2},
		{"min.s32", 5, 0xfffffffe, 0, 0xfffffffe},
		{"min.u32", 5, 0xfffffffe, 0, 5},
		{"max.s32", 5, 0xfffffffe, 0, 5},
		{"max.u64", 5, 6, 0, 6},
		{"min.s64", 5, (uint64_t)-6, 0, (uint64_t)-6},
		{"and.b32", 0xff, 0x0f, 0, 0x0f},
		{"or.b64", 0xf0, 0x0f, 0, 0xff},
		{"xor.b32", 0xff, 0x0f, 0, 0xf0},
		{"exch.b32", 1, 2, 0, 2},
		{"exch.b64", 1, 2, 0, 2},
		{"cas.b32", 5, 5, 9, 9},
		{"cas.b32", 4, 5, 9, 4},
		{"cas.b64", 5, 5, 9, 9},
		{"add.f32", 0x3f800000, 0x3f800000, 0, 0x40000000},
		{"add.f64", 0x3ff0000000000000, 0x3ff0000000000000, 0, 0x4000000000000000},
		{"add.noftz.f16x2", 0x3c003c00, 0x3c004000, 0, 0x40004200},
	};
	static const char *const places[] = {"global", "shared", ""};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		for (size_t place = 0; place < 3; place++) {
			bool cas = strncmp(rows[k].operation, "cas", 3) == 0;
			bool wide = strstr(rows[k].operation, "64") != NULL;
			char text[4096], body[2048];
			uint64_t out[2] = {rows[k].start, 0};
			struct ptx_error error;
			snprintf(body, sizeof(body),
				 "ld.global.u64 %%d5, [%%d1]; mov.u64 %%d6, area;\n"
				 "st.shared.u64 [%%d6], %%d5;\n"
				 "%s mov.b64 %%d3, 0x%llx; cvt.u32.u64 %%r3, %%d3;\n"
				 "mov.b64 %%d4, 0x%llx; cvt.u32.u64 %%r4, %%d4;\n"
				 "atom%s%s.%s %s, [%%d7], %s%s; %s\n"
				 "st.global.u64 [%%d1+8], %%d2; %s\n",
				 place == 1 ? "mov.u64 %d7, %d6;" : "mov.u64 %d7, %d1;",
				 (unsigned long long)rows[k].b, (unsigned long long)rows[k].c,
				 place < 2 ? "." : ".relaxed.gpu", places[place], rows[k].operation,
				 wide ? "%d2" : "%r2", wide ? "%d3" : "%r3",
				 cas ? wide ? ", %d4" : ", %r4" : "",
				 wide ? "" : "cvt.u64.u32 %d2, %r2;",
				 place == 1 ? "ld.shared.u64 %d5, [%d6]; st.global.u64 [%d1], %d5;"
					    : "");
			snprintf(text, sizeof(text), "%s.shared .align 8 .b8 area[8];\n%s%s%s",
				 PTX_HEAD,
				 ".visible .entry k(.param .u64 out, .param .align 8 .b8 "
				 "more[24])\n{\n"
				 ".reg .b32 %r<20>; .reg .b64 %d<20>; ld.param.u64 %d1, [out];\n",
				 body, "ret; }\n");
			int r = run(text, 1, 0, out, &error);
			if (r)
				fail_msg("%s: %s\n%s", rows[k].operation, error.message, text);
			assert_int_equal(out[1], rows[k].start);
			assert_int_equal(out[0], rows[k].want);
		}
	}
}

struct half {
	const struct ptx_kernel *kernel;
	const struct ptx_launch *launch;
	uint64_t first;
	int result;
};

static void *run_half(void *pointer)
{
	struct half *half = pointer;

	for (uint64_t k = half->first; k < half->launch->grid.x && !half->result; k += 2)
		half->result = ptx_run_block(half->kernel, half->launch, k, 0, NULL, NULL, NULL);
	return NULL;
}

/* Blocks on two CPU threads at once; and one block waits for the others. */
static void blocks_side_by_side(void **state)
{
	static const char text[] =
		PTX_HEAD KERNEL("mov.u32 %r2, %ctaid.x; atom.global.add.u32 %r3, [%d1], 1; "
				"red.global.max.u32 [%d1+8], %r2;\n"
				"setp.ne.u32 %p1, %r2, 0; @%p1 bra END;\n"
				"WAIT: ld.volatile.global.u32 %r4, [%d1]; setp.ge.u32 %p2, %r4, "
				"3200; @%p2 bra END;\n"
				"nanosleep.u32 100; bra WAIT;\nEND:");
	uint64_t out[2] = {0};
	struct arguments arguments = {out};
	struct ptx_module *module = fixture_load(text);
	struct ptx_launch launch = {.grid = {100, 1, 1}, .block = {64, 1, 1}, .params = &arguments};
	struct half halves[2];
	pthread_t threads[2];

	(void)state;
	for (uint64_t k = 0; k < 2; k++) {
		halves[k] = (struct half){ptx_module_kernel(module, "k"), &launch, k, 0};
		assert_int_equal(pthread_create(&threads[k], NULL, run_half, &halves[k]), 0);
	}
	for (int k = 0; k < 2; k++) {
		pthread_join(threads[k], NULL);
		assert_int_equal(halves[k].result, 0);
	}
	assert_int_equal(out[0], 6400);
	assert_int_equal(out[1], 99);
	ptx_module_free(module);
}

/* What counts is memory that others can see. */
static void who_wrote_is_told(void **state)
{
	static const struct {
		const char *body;
		bool wrote;
	} rows[] = {
		{"ld.global.u32 %r2, [%d1];", false},
		{"st.shared.u32 [area], %r1;", false},
		{"mov.u64 %d2, area; cvta.shared.u64 %d3, %d2; st.u32 [%d3], 1;", false},
		{"st.global.u32 [%d1], 1;", true},
		{"st.u32 [%d1], 1;", true},
		{"atom.global.add.u32 %r2, [%d1], 1;", true},
		{"red.global.add.u32 [%d1], 1;", true},
	};
	uint64_t out[2] = {0};
	struct arguments arguments = {out};
	struct ptx_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = &arguments};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		char text[1024];
		bool wrote = !rows[k].wrote;
		snprintf(text, sizeof(text),
			 "%s.shared .align 8 .b8 area[8];\n"
			 ".visible .entry k(.param .u64 out, .param .align 8 .b8 more[24])\n{\n"
			 ".reg .b32 %%r<4>; .reg .b64 %%d<4>; ld.param.u64 %%d1, [out];\n%s\nret; "
			 "}\n",
			 PTX_HEAD, rows[k].body);
		struct ptx_module *module = fixture_load(text);
		assert_int_equal(ptx_run_block(ptx_module_kernel(module, "k"), &launch, 0, 0, NULL,
					       NULL, &wrote),
				 0);
		assert_int_equal(wrote, rows[k].wrote);
		ptx_module_free(module);
	}
}

static void first_values(void **state)
{
	static const char text[] = PTX_HEAD
		".global .u32 scalar = 7; .global .align 16 .f32 point[2] = {1.5, 0f40000000};\n"
		".global .u16 table[2][3] = {{1, 2, 3}, {4}}; .const .s8 bytes[] = {-1, 2, 'x'};\n";
	static const char good[] = PTX_HEAD
		".global .u32 scalar = 7; .global .align 16 .f32 point[2] = {1.5, 0f40000000};\n"
		".global .u16 table[2][3] = {{1, 2, 3}, {4}}; .const .s8 bytes[] = {-1, 2};\n"
		".global .u64 pointers[3] = {scalar, generic(table)+6, f};\n"
		".global .b8 masked[8] = {0xFF(scalar), 0xFF00(scalar), 0xFF0000(scalar), 0};\n"
		".func f() { ret; }\n";
	struct ptx_module *module = NULL;
	struct ptx_error error;
	void *scalar, *at;
	size_t size;

	(void)state;
	assert_int_equal(ptx_module_load(&module, text, sizeof(text) - 1, &error), -EINVAL);
	assert_int_equal(error.line, 5);
	module = fixture_load(good);
	assert_true(ptx_module_global(module, "scalar", &scalar, &size));
	assert_int_equal(*(uint32_t *)scalar, 7);
	assert_true(ptx_module_global(module, "point", &at, &size));
	assert_int_equal(size, 8);
	assert_int_equal((uintptr_t)at % 16, 0);
	assert_true(((float *)at)[0] == 1.5f && ((float *)at)[1] == 2);
	assert_true(ptx_module_global(module, "table", &at, &size));
	assert_memory_equal(at, ((uint16_t[]){1, 2, 3, 4, 0, 0}), 12);
	uint8_t *table = at;
	assert_true(ptx_module_global(module, "bytes", &at, &size));
	assert_int_equal(size, 2);
	assert_memory_equal(at, "\xff\x02", 2);
	assert_true(ptx_module_global(module, "pointers", &at, &size));
	assert_int_equal(((uint64_t *)at)[0], (uintptr_t)scalar);
	assert_int_equal(((uint64_t *)at)[1], (uintptr_t)table + 6);
	assert_true(((uint64_t *)at)[2] != 0);
	assert_true(ptx_module_global(module, "masked", &at, &size));
	assert_memory_equal(at, &scalar, 3);
	assert_false(ptx_module_global(module, "none", &at, &size));
	ptx_module_memory(module, &at, &size);
	assert_true(scalar >= at && (uint8_t *)scalar < (uint8_t *)at + size);
	ptx_module_free(module);
}

static void variables_in_code(void **state)
{
	(void)state;
	must_give(PTX_HEAD
		  ".global .align 8 .b8 area[32];\n.const .u32 seven[2] = {6, 7};\n" KERNEL(
			  "st.global.u32 [area+12], 5; mov.u64 %d2, area+8; ld.u32 %r2, [%d2+4];\n"
			  "ld.const.u32 %r3, [seven+4]; cvta.const.u64 %d3, seven; ld.u32 %r4, "
			  "[%d3];\n"
			  "mad.lo.u32 %r2, %r3, 10, %r2; mad.lo.u32 %r2, %r4, 100, %r2;\n"
			  "st.global.u32 [%d1], %r2;"),
		  675);
}

static void asynchronous_copies(void **state)
{
	(void)state;
	must_give(PTX_HEAD ".shared .align 16 .b8 area[32];\n" KERNEL(
			  "st.global.u64 [%d1+16], 0x1111; st.global.u64 [%d1+24], 0x2222;\n"
			  "cp.async.ca.shared.global [area+8], [%d1+16], 8;\n"
			  "cp.async.cg.shared.global [area+16], [%d1+16], 16, 4;\n"
			  "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;\n"
			  "ld.shared.u64 %d2, [area+8]; ld.shared.u64 %d3, [area+16];\n"
			  "ld.shared.u64 %d4, [area+24]; shl.b64 %d3, %d3, 16; add.u64 %d2, %d2, "
			  "%d3;\n"
			  "add.u64 %d2, %d2, %d4; st.global.u64 [%d1], %d2;"),
		  0x11111111);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters),        cmocka_unit_test(widths_and_vectors),
		cmocka_unit_test(shared_memory),     cmocka_unit_test(function_shared),
		cmocka_unit_test(local_memory),      cmocka_unit_test(wild_addresses),
		cmocka_unit_test(atomics),           cmocka_unit_test(blocks_side_by_side),
		cmocka_unit_test(who_wrote_is_told), cmocka_unit_test(first_values),
		cmocka_unit_test(variables_in_code), cmocka_unit_test(asynchronous_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
