/* What stands between two blocks of a kernel that works asynchronously. No simulator tells whether
 * the asynchronous proxy is fenced, or whether a warp is whole. */
#include "weir/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FENCE  "fence.proxy.async.shared::cta;"
#define GROUPS "cp.async.bulk.wait_group\t0;"
#define WARP   "bar.warp.sync\t0xffffffff;"
#define INVAL  "mbarrier.inval.shared.b64"

#define INIT "mbarrier.init.shared.b64 [s], 1;"
#define LOAD                                                                                   \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0], 16, " \
	"[s];"
#define STORE                                                           \
	"cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 16;" \
	"cp.async.bulk.commit_group;"
#define PRODUCT                                                                              \
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d0, %d0, " \
	"%p0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
#define AWAIT  "wgmma.wait_group.sync.aligned 0;"
#define SQUARE "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;"
/* Threads that may miss a barrier. */
#define MISS "@%p0 ret; bar.sync 0;"

/* The text of a kernel's copy in a form; "" if it is refused. */
static char *form_with(enum weir_form form, const char *head, const char *code)
{
	struct weir_transform_options options = {.forms = 1u << form};
	struct weir_error error;
	char text[2048], *out, *copy;
	size_t len;

	snprintf(text, sizeof(text),
		 ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n"
		 ".maxntid 384\n%s { .reg .b32 %%r<4>; .reg .b64 %%d<4>; .reg .pred %%p<2>;\n"
		 ".reg .f32 %%f<4>; .shared .align 8 .b64 s; mov.u32 %%r0, %%tid.x;\n"
		 "setp.gt.u32 %%p0, %%r0, 9;\n%s ret; }\n",
		 head, code);
	assert_int_equal(weir_transform(&out, &len, text, strlen(text), &options, &error), 0);
	copy = strstr(out, weir_form_suffix(form));
	copy = strdup(copy ? copy : "");
	free(out);
	assert_non_null(copy);
	return copy;
}

static char *form_of(enum weir_form form, const char *code)
{
	return form_with(form, "", code);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

static const struct {
	const char *code;
	bool fence, groups, warp, inval; /* warp: once more than where tickets are drawn, twice */
} kernels[] = {
	{"", false, false, false, false},
	{"cp.async.ca.shared.global [s], [%d0], 8;", false, false, false, false},
	{INIT, false, false, false, true},
	{INIT LOAD, true, false, false, true},
	{STORE, true, true, false, false},
	{PRODUCT AWAIT, true, false, false, false},
	{PRODUCT AWAIT MISS, true, false, true, false},
	{INIT MISS, false, false, false, true},
	{SQUARE, false, false, false, false},
	{SQUARE MISS, false, false, true, false},
	{"cp.async.bulk.prefetch.L2.global [%d0], 16;", false, false, false, false},
};

static void between_blocks(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		char *form = form_of(WEIR_PERSISTENT, kernels[k].code);

		if (!*form || (strstr(form, FENCE) != NULL) != kernels[k].fence ||
		    (strstr(form, GROUPS) != NULL) != kernels[k].groups ||
		    count(form, WARP) != 2u + kernels[k].warp ||
		    (strstr(form, INVAL) != NULL) != kernels[k].inval)
			fail_msg("%s:\n%s", kernels[k].code, form);
		free(form);
	}
}

/* Lanes that agree natively may be in different blocks of the grid. */
static void branches_may_diverge(void **state)
{
	static const char code[] = "@%p0 bra.uni L; L: bra.uni M; M:";
	char *persistent = form_of(WEIR_PERSISTENT, code), *sliced = form_of(WEIR_SLICED, code);

	(void)state;
	assert_int_equal(count(persistent, ".uni"), 1);
	assert_int_equal(count(sliced, ".uni"), 2);
	free(persistent);
	free(sliced);
}

static const struct {
	const char *code;
	bool eligible;
} products[] = {
	{PRODUCT AWAIT, true},
	{PRODUCT, false},
	{PRODUCT "@%p0 " AWAIT, false},
	{PRODUCT "wgmma.wait_group.sync.aligned 1;", false},
	{PRODUCT "@%p0 ret; " AWAIT, false},
	{AWAIT PRODUCT, false},
	{"@%p0 bra A; " PRODUCT "A: " AWAIT, true},
	{"@%p0 bra A; " PRODUCT AWAIT "A: ", true},
	{"@%p0 bra A; " PRODUCT "bra B; A: " AWAIT "B: ", false},
	{"L: " PRODUCT "@%p0 bra L; " AWAIT, true},
	{"L: " AWAIT PRODUCT "@%p0 bra L;", false},
	{PRODUCT "L: bra L;", true},
};

/* Products must be awaited on every path to an exit. */
static void awaited_products(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(products) / sizeof(products[0]); k++) {
		char *form = form_of(WEIR_PERSISTENT, products[k].code);

		if ((*form != '\0') != products[k].eligible)
			fail_msg("%s", products[k].code);
		free(form);
	}
}

/* A worker's next block begins with the registers that the kernel was compiled for. */
static void registers_stay(void **state)
{
	static const char code[] = "setmaxnreg.dec.sync.aligned.u32 40;";
	char *persistent = form_of(WEIR_PERSISTENT, code), *sliced = form_of(WEIR_SLICED, code);

	(void)state;
	assert_true(*persistent);
	assert_null(strstr(persistent, "setmaxnreg"));
	assert_non_null(strstr(sliced, "setmaxnreg"));
	free(persistent);
	free(sliced);
}

static const struct {
	const char *head;
	bool eligible;
} heads[] = {
	{".explicitcluster .reqnctapercluster 1, 1, 1", true},
	{".maxclusterrank 8", true}, /* a launcher keeps launches in clusters native */
	{".explicitcluster .reqnctapercluster 1, 2, 1", false},
	{".reqnctapercluster 2", false},
	{".explicitcluster", false},
	{".reqntid 384 .blocksareclusters .reqnctapercluster 1, 1, 1", false},
};

static void kernels_for_clusters(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
		for (enum weir_form form = WEIR_SLICED; form <= WEIR_PERSISTENT; form++) {
			char *copy = form_with(form, heads[k].head, "");

			if ((*copy != '\0') != heads[k].eligible)
				fail_msg("%s", heads[k].head);
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_blocks),       cmocka_unit_test(branches_may_diverge),
		cmocka_unit_test(awaited_products),     cmocka_unit_test(registers_stay),
		cmocka_unit_test(kernels_for_clusters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
