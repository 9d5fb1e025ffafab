/* Bad requests, bad images and bad runs of weir-compile: the client is told, and nothing else
 * happens. */
#include "compile-service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "compile/compile.h"

#include "weir/base.h"

static struct weir_compile_file good_head(void)
{
	return (struct weir_compile_file){.magic = WEIR_COMPILE_MAGIC,
					  .version = 1,
					  .sm = 90,
					  .forms = PERSISTENT,
					  .name = 64,
					  .name_size = 4,
					  .image = 68,
					  .image_size = PTX_SIZE};
}

static void expect_head_refused(struct weir_compile_file head)
{
	uint8_t bytes[sizeof(head) + 4 + PTX_SIZE];

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 64, "add", 4);
	memcpy(bytes + 68, ptx, PTX_SIZE);
	get(&one, fixture_sealed(bytes, sizeof(bytes), FIXTURE_SEALS));
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	assert_true(strlen(one.text) > 0);
}

/* The agent refuses these itself, without starting weir-compile. */
static void test_lying_files(void **state)
{
	struct weir_compile_file head;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
#define REFUSED_WITH(change)               \
	do {                               \
		head = good_head();        \
		change;                    \
		expect_head_refused(head); \
	} while (0)
	REFUSED_WITH(head.magic++);
	REFUSED_WITH(head.version = 0);
	REFUSED_WITH(head.sm = 0);
	REFUSED_WITH(head.sm = UINT32_MAX);
	REFUSED_WITH(head.registers = 256);
	REFUSED_WITH(head.forms = 0);
	REFUSED_WITH(head.forms = 1u << WEIR_NATIVE);
	REFUSED_WITH(head.forms |= 1u << 31);
	REFUSED_WITH(head.name = 63);
	REFUSED_WITH(head.name = UINT64_MAX);
	REFUSED_WITH(head.name_size = 1);
	REFUSED_WITH(head.name_size = UINT64_MAX);
	REFUSED_WITH(head.name_size = WEIR_KERNEL_NAME_MAX + 1);
	REFUSED_WITH(head.image = 0);
	REFUSED_WITH(head.image = UINT64_MAX - 8);
	REFUSED_WITH(head.image_size = 0);
	REFUSED_WITH(head.image_size++);
	REFUSED_WITH(head.image_size = UINT64_MAX);
#undef REFUSED_WITH
	head = good_head();
	get(&one, fixture_sealed(&head, sizeof(head) - 1, FIXTURE_SEALS));
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	get(&one, fixture_sealed(&head, 0, FIXTURE_SEALS));
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	assert_int_equal(compile.started, 0);
}

/* The agent does not read files that could change or block. */
static void test_not_sealed(void **state)
{
	static const int seals[] = {0, F_SEAL_WRITE, F_SEAL_GROW | F_SEAL_SHRINK,
				    F_SEAL_WRITE | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_SHRINK};
	struct weir_compile_file head = good_head();
	int ends[2];

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_PTX});
	for (size_t i = 0; i < countof(seals); i++) {
		get(&one, fixture_sealed(&head, sizeof(head), seals[i]));
		assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	}
	assert_int_equal(pipe(ends), 0);
	get(&one, ends[0]);
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	close(ends[1]);
	get(&one, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	get(&one, open("/tmp", O_PATH | O_CLOEXEC));
	assert_int_equal(one.status, WEIR_COMPILE_REFUSED);
	assert_int_equal(compile.started, 0);
}

/* weir-compile refuses these. */
static void test_hostile_images(void **state)
{
	char junk[4096];
	uint8_t bytes[sizeof(struct weir_compile_file) + 4 + PTX_SIZE];
	struct weir_compile_file head = good_head();

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	memset(junk, 0xa5, sizeof(junk));
	get(&one, fixture_file("add", junk, sizeof(junk), 90, PERSISTENT));
	expect_text(WEIR_COMPILE_REFUSED, "");
	get(&one, fixture_file("sub", ptx, PTX_SIZE, 90, PERSISTENT));
	expect_text(WEIR_COMPILE_REFUSED, "no kernel sub");
	memcpy(bytes, &head, sizeof(head));
	memset(bytes + 64, 'x', 4);
	memcpy(bytes + 68, ptx, PTX_SIZE);
	get(&one, fixture_sealed(bytes, sizeof(bytes), FIXTURE_SEALS));
	expect_text(WEIR_COMPILE_REFUSED, "a name with");
	get(&one, file_for(999));
	expect_text(WEIR_COMPILE_FAILED, "sm_999");
	assert_int_equal(compile.counters.outcomes[HELPER_REFUSED], 3);
	assert_int_equal(compile.counters.outcomes[HELPER_FAILED], 1);
	assert_int_equal(HASH_COUNT(compile.cache.all), 0);
}

/* If no form is possible, the object gives the reasons, and so do the metrics. */
static void test_forms_refused(void **state)
{
	static const char refused[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				      ".visible .entry add()\n{\n.reg .b32 %r;\n"
				      "mov.b32 %r, %envreg1;\nret;\n}\n";
	char *text = NULL;
	size_t size;

	(void)state;
	start(&(struct config_compile){.mode = COMPILE_MACHINE_CODE});
	for (uint32_t sm = 75; sm < 77; sm++)
		get(&one, fixture_file("add", refused, sizeof(refused) - 1, sm,
				       PERSISTENT | 1u << WEIR_RESUMABLE));
	const struct weir_object *object = object_of(&one);
	assert_int_equal(object->image_size, 0);
	assert_int_equal(compile.counters.n_reasons, 2);
	FILE *out = open_memstream(&text, &size);
	compile_metrics_write(out, &compile);
	fclose(out);
	assert_non_null(strstr(text, "weir_compile_refusals_total{form=\"persistent\",reason=\"a "
				     "special register "));
	assert_non_null(strstr(text, "\"} 2\nweir_compile_refusals_total{form=\"resumable\","));
	assert_non_null(
		strstr(text, "weir_compile_refusals_total{form=\"any\",reason=\"other\"} 0"));
	free(text);
}

static void expect_trick(enum trick trick, enum helper_outcome outcome)
{
	start_trick(trick, 1);
	get(&one, file_for(90));
	assert_int_equal(one.status, WEIR_COMPILE_FAILED);
	assert_true(strlen(one.text) > 0);
	assert_int_equal(compile.counters.outcomes[outcome], 1);
	assert_null(compile.jobs);
	assert_int_equal(compile.n_running, 0);
	stop();
}

static void test_bad_helpers(void **state)
{
	(void)state;
	expect_trick(WAITS, HELPER_TIME);
	expect_trick(SPINS, HELPER_TIME);
	expect_trick(WRITES_JUNK, HELPER_CRASH);
	expect_trick(WRITES_NOTHING, HELPER_CRASH);
	expect_trick(ABORTS, HELPER_CRASH);
	expect_trick(EXITS_ODDLY, HELPER_TROUBLE);
	start_trick(IS_DONE, 1);
	get(&one, file_for(90));
	expect_text(WEIR_COMPILE_REFUSED, "refused");
}

static void test_failures_are_remembered(void **state)
{
	(void)state;
	start_trick(ABORTS, 1);
	get(&one, file_for(90));
	get(&two, file_for(90));
	assert_int_equal(two.status, WEIR_COMPILE_FAILED);
	assert_string_equal(two.text, one.text);
	assert_int_equal(compile.started, 1);
	for (uint32_t i = 0; i < CACHE_FAILURES_MAX; i++)
		get(&one, file_for(100 + i));
	assert_int_equal(HASH_COUNT(compile.cache.failures), CACHE_FAILURES_MAX);
	get(&two, file_for(90));
	assert_int_equal(compile.started, CACHE_FAILURES_MAX + 2);
	stop();
	/* Failures that are not the kernel's fault are not remembered. */
	start_trick(EXITS_ODDLY, 1);
	get(&one, file_for(90));
	get(&one, file_for(90));
	assert_int_equal(compile.started, 2);
}

static void test_killed_in_the_middle(void **state)
{
	(void)state;
	start_trick(WAITS, 1);
	ask(&one, 1, file_for(90));
	pump();
	assert_non_null(compile.jobs);
	kill(compile.jobs->helper.pid, SIGKILL);
	fixture_wait(&loop, &one, 1);
	expect_text(WEIR_COMPILE_FAILED, "killed");
	assert_int_equal(compile.counters.outcomes[HELPER_KILLED], 1);
}

/* A text that really takes the compiler's time and memory. */
static char *bomb(size_t *size)
{
	enum { VALUES = 6000, ROUNDS = 60 };
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	fprintf(out,
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .entry add(.param .u64 p)\n{\n.reg .b64 %%a;\n.reg .f32 %%f<%d>;\n"
		"ld.param.u64 %%a, [p];\n",
		VALUES);
	for (int i = 0; i < VALUES; i++)
		fprintf(out, "ld.global.f32 %%f%d, [%%a+%d];\n", i, 4 * i);
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 0; i < VALUES; i++)
			fprintf(out, "fma.rn.f32 %%f%d, %%f%d, %%f%d, %%f%d;\n", i, i,
				(i * 7 + round) % VALUES, (i * 13 + 5 * round) % VALUES);
	for (int i = 0; i < VALUES; i++)
		fprintf(out, "st.global.f32 [%%a+%d], %%f%d;\n", 4 * i, i);
	fprintf(out, "ret;\n}\n");
	fclose(out);
	return text;
}

static void expect_limit(const struct config_compile *config, enum helper_outcome outcome)
{
	size_t size;
	char *text = bomb(&size);

	start(config);
	ask(&one, 1, fixture_file("add", text, size, 90, PERSISTENT));
	free(text);
	/* The service answers others meanwhile. */
	get(&two, file_for(90));
	assert_int_equal(two.status, WEIR_COMPILE_OK);
	fixture_wait(&loop, &one, 1);
	assert_int_equal(one.status, WEIR_COMPILE_FAILED);
	assert_int_equal(compile.counters.outcomes[outcome], 1);
}

static void test_takes_too_long(void **state)
{
	(void)state;
	expect_limit(&(struct config_compile){.mode = COMPILE_MACHINE_CODE, .seconds = 1},
		     HELPER_TIME);
}

static void test_takes_too_much(void **state)
{
	(void)state;
	expect_limit(&(struct config_compile){.mode = COMPILE_MACHINE_CODE, .memory_mib = 512},
		     HELPER_MEMORY);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		COMPILE_TEST(test_lying_files),          COMPILE_TEST(test_not_sealed),
		COMPILE_TEST(test_hostile_images),       COMPILE_TEST(test_forms_refused),
		COMPILE_TEST(test_bad_helpers),          COMPILE_TEST(test_failures_are_remembered),
		COMPILE_TEST(test_killed_in_the_middle), COMPILE_TEST(test_takes_too_long),
		COMPILE_TEST(test_takes_too_much),
	};

	misbehave_if_asked(argc, argv);
	return cmocka_run_group_tests(tests, make_name, NULL);
}
