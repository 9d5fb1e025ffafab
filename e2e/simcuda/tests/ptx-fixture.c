#include "ptx-fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct ptx_module *fixture_load(const char *text)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	int r = ptx_module_load(&module, text, strlen(text), &error);

	if (r)
		fail_msg("load: %d, line %d: %s\n%s", r, error.line, error.message, text);
	return module;
}

struct ptx_module *fixture_load_file(const char *path)
{
	struct ptx_module *module = NULL;
	struct ptx_error error;
	FILE *file = fopen(path, "rb");
	size_t room = 8 << 20;
	char *text = malloc(room);

	if (!file)
		fail_msg("%s cannot be opened", path);
	assert_non_null(text);
	size_t len = fread(text, 1, room, file);
	fclose(file);
	int r = ptx_module_load(&module, text, len, &error);
	free(text);
	if (r)
		fail_msg("%s: %d, line %d: %s", path, r, error.line, error.message);
	struct ptx_kernel *kernel;
	for (size_t k = 0; (kernel = ptx_module_kernel_at(module, k)); k++)
		if (ptx_kernel_check(kernel, &error))
			fail_msg("%s: line %d: %s", path, error.line, error.message);
	return module;
}

int fixture_run(struct ptx_module *module, const char *name, struct ptx_dim grid,
		struct ptx_dim block, uint32_t dynamic_shared, const void *params,
		struct ptx_error *error)
{
	struct ptx_kernel *kernel = ptx_module_kernel(module, name);
	struct ptx_launch launch = {
		.grid = {grid.x, grid.y ? grid.y : 1, grid.z ? grid.z : 1},
		.block = {block.x, block.y ? block.y : 1, block.z ? block.z : 1},
		.dynamic_shared = dynamic_shared,
		.params = params,
		.sm_count = 4,
		.max_instructions = 100000000};
	uint64_t blocks = (uint64_t)launch.grid.x * launch.grid.y * launch.grid.z;

	if (!kernel)
		fail_msg("there is no kernel %s", name);
	for (uint64_t k = 0; k < blocks; k++) {
		int r = ptx_run_block(kernel, &launch, k, (uint32_t)(k % 4), NULL, error, NULL);
		if (r)
			return r;
	}
	return 0;
}

void fixture_must_run(struct ptx_module *module, const char *kernel, struct ptx_dim grid,
		      struct ptx_dim block, uint32_t dynamic_shared, const void *params)
{
	struct ptx_error error;
	int r = fixture_run(module, kernel, grid, block, dynamic_shared, params, &error);

	if (r)
		fail_msg("%s: %d, line %d: %s", kernel, r, error.line, error.message);
}

int fixture_block(const char *text, uint32_t threads, uint32_t dynamic_shared, const void *params,
		  struct ptx_error *error)
{
	struct ptx_module *module = fixture_load(text);
	int r = fixture_run(module, "k", DIM(1), DIM(threads), dynamic_shared, params, error);

	ptx_module_free(module);
	return r;
}

void fixture_block_runs(const char *text, uint32_t threads, uint32_t dynamic_shared,
			const void *params)
{
	struct ptx_error error;
	int r = fixture_block(text, threads, dynamic_shared, params, &error);

	if (r)
		fail_msg("%d, line %d: %s", r, error.line, error.message);
}

void fixture_block_faults(const char *text, uint32_t threads, uint32_t dynamic_shared,
			  const void *params, const char *message)
{
	struct ptx_error error;

	assert_int_equal(fixture_block(text, threads, dynamic_shared, params, &error), -EFAULT);
	if (!strstr(error.message, message))
		fail_msg("'%s' is not in '%s'", message, error.message);
	assert_true(error.line > 0);
}

static const char head[] = PTX_HEAD
	".visible .entry k(.param .u64 out, .param .u64 in1, .param .u64 in2, .param .u64 in3,\n"
	"	.param .u64 in4)\n"
	"{\n"
	".reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %r<5>; .reg .b64 %d<5>, %at;\n"
	"ld.param.u64 %at, [out];\n"
	"ld.param.u64 %d1, [in1]; ld.param.u32 %r1, [in1]; ld.param.u16 %h1, [in1];\n"
	"ld.param.u64 %d2, [in2]; ld.param.u32 %r2, [in2]; ld.param.u16 %h2, [in2];\n"
	"ld.param.u64 %d3, [in3]; ld.param.u32 %r3, [in3]; ld.param.u16 %h3, [in3];\n"
	"ld.param.u64 %d4, [in4]; ld.param.u32 %r4, [in4]; ld.param.u16 %h4, [in4];\n"
	"{ .reg .b32 %odd; and.b32 %odd, %r1, 1; setp.ne.u32 %p1, %odd, 0;\n"
	"and.b32 %odd, %r2, 1; setp.ne.u32 %p2, %odd, 0;\n"
	"and.b32 %odd, %r3, 1; setp.ne.u32 %p3, %odd, 0;\n"
	"and.b32 %odd, %r4, 1; setp.ne.u32 %p4, %odd, 0; }\n";
static const char tail[] =
	"\n"
	"st.global.u64 [%at], %d0; st.global.u32 [%at+8], %r0; st.global.u16 [%at+12], %h0;\n"
	"selp.u32 %r0, 1, 0, %p0; st.global.u32 [%at+16], %r0;\n"
	"ret;\n}\n";

uint64_t fixture_compute(const struct fixture_row *row)
{
	char text[8192];
	struct {
		uint64_t d;
		uint32_t r;
		uint16_t h, pad;
		uint32_t p, pad2;
	} out[1] = {0};
	struct {
		void *out;
		uint64_t in[4];
	} params = {out, {row->in[0], row->in[1], row->in[2], row->in[3]}};

	snprintf(text, sizeof(text), "%s%s%s", head, row->text, tail);
	struct ptx_module *module = fixture_load(text);
	struct ptx_error error;
	if (ptx_kernel_check(ptx_module_kernel(module, "k"), &error))
		fail_msg("%s: %s", row->text, error.message);
	fixture_must_run(module, "k", DIM(1), DIM(1), 0, &params);
	ptx_module_free(module);
	const char *at = strchr(row->text, '%');
	while (at && !(strchr("hrdp", at[1]) && at[2] == '0'))
		at = strchr(at + 1, '%');
	if (!at) {
		fail_msg("%s has no result", row->text);
		return 0;
	}
	return at[1] == 'd' ? out->d : at[1] == 'r' ? out->r : at[1] == 'h' ? out->h : out->p;
}

void fixture_check(const struct fixture_row *rows, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		uint64_t got = fixture_compute(&rows[k]);
		if (got != rows[k].want)
			fail_msg("%s of 0x%llx, 0x%llx, 0x%llx, 0x%llx gives 0x%llx, not 0x%llx",
				 rows[k].text, (unsigned long long)rows[k].in[0],
				 (unsigned long long)rows[k].in[1],
				 (unsigned long long)rows[k].in[2],
				 (unsigned long long)rows[k].in[3], (unsigned long long)got,
				 (unsigned long long)rows[k].want);
	}
}
