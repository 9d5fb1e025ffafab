/* What was found of kernels that ran at the same time, kept in a file. */
#include "profile/coexec-file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-coexec-file-XXXXXX", path[64];
static struct coexec_memory memory;

/* What the file gives to an agent that starts. Then that ends. */
static double found_by_the_next(const uint64_t *kernels, unsigned n, uint8_t *workers)
{
	struct coexec_file file;
	struct loop loop;

	memset(&memory, 0, sizeof(memory));
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(coexec_file_init(&file, &loop, &memory, path), 0);
	double found = coexec_memory_find(&memory, kernels, n, workers);
	coexec_file_deinit(&file);
	loop_deinit(&loop);
	return found;
}

static void learn(void)
{
	struct coexec_file file;
	struct loop loop;

	unlink(path);
	memset(&memory, 0, sizeof(memory));
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(coexec_file_init(&file, &loop, &memory, path), 0);
	coexec_memory_put(&memory, (uint64_t[]){7, 3, 5}, 3, (uint8_t[]){1, 2, 4}, 1.5);
	coexec_memory_put(&memory, (uint64_t[]){7, 3}, 2, (uint8_t[]){6, 2}, 1.25);
	coexec_file_deinit(&file);
	loop_deinit(&loop);
}

static void test_keeps_what_was_found(void **state)
{
	uint8_t workers[COEXEC_MOST];

	(void)state;
	learn();
	for (unsigned i = 0; i < 2; i++) {
		assert_true(found_by_the_next((uint64_t[]){3, 5, 7}, 3, workers) == 1.5);
		assert_memory_equal(workers, ((uint8_t[]){2, 4, 1}), 3);
		assert_true(found_by_the_next((uint64_t[]){3, 7}, 2, workers) == 1.25);
	}
}

static uint8_t *load(size_t *size)
{
	FILE *in = fopen(path, "r");
	uint8_t *bytes = malloc(1 << 20);

	assert_non_null(in);
	assert_non_null(bytes);
	*size = fread(bytes, 1, 1 << 20, in);
	fclose(in);
	return bytes;
}

/* Each byte counts. */
static void test_damage(void **state)
{
	size_t size;

	(void)state;
	learn();
	cleanup(freep) uint8_t *bytes = load(&size);
	memset(&memory, 0, sizeof(memory));
	assert_null(coexec_file_parse(&memory, bytes, size));
	memset(&memory, 0, sizeof(memory));
	for (size_t at = 0; at < size; at += 1 + at % 97) {
		bytes[at] ^= 0x10;
		assert_non_null(coexec_file_parse(&memory, bytes, size));
		bytes[at] ^= 0x10;
	}
	assert_non_null(coexec_file_parse(&memory, bytes, size - 1));
	assert_non_null(coexec_file_parse(&memory, bytes, 0));
	assert_false(coexec_memory_knows(&memory, 7));

	assert_int_equal(truncate(path, 100), 0);
	assert_true(found_by_the_next((uint64_t[]){3, 7}, 2, NULL) == 0);
}

static void test_no_folder(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/none/file", folder);
	assert_true(found_by_the_next((uint64_t[]){3, 7}, 2, NULL) == 0);
	learn();
	assert_true(found_by_the_next((uint64_t[]){3, 7}, 2, NULL) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_what_was_found),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_folder),
	};

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	int r = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(path, sizeof(path), "%s/file", folder);
	unlink(path);
	rmdir(folder);
	return r;
}
