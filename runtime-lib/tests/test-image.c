/* Which PTX is taken out of an image, and for which device. */
#include "preempt/image.h"

#include "weir/fatbin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A container with machine code and PTX. */
struct fatbin {
	struct fatbin_container container;
	struct fatbin_entry cubin;
	char code[40];
	struct fatbin_entry ptx;
	char text[16];
};

static struct fatbin fatbin_of(uint32_t cubin, uint64_t cubin_flags, uint32_t ptx, uint64_t flags)
{
	return (struct fatbin){
		.container = {FATBIN_MAGIC, 1, 16, sizeof(struct fatbin) - 16},
		.cubin = {.kind = FATBIN_ELF,
			  .header_size = 64,
			  .payload_size = 40,
			  .sm = cubin,
			  .flags = cubin_flags},
		.ptx = {.kind = FATBIN_PTX,
			.header_size = 64,
			.payload_size = 16,
			.sm = ptx,
			.flags = FATBIN_LZ4 | flags},
		.text = "compressed text",
	};
}

static void only_ptx_is_kept(void **state)
{
	struct fatbin fatbin = fatbin_of(90, 0, 90, 0);
	const void *wrapper[3] = {(void *)(uintptr_t)0x1466243b1, &fatbin};
	struct image *image = image_keep(wrapper, 0);

	(void)state;
	assert_non_null(image);
	assert_int_equal(image->size, 16 + 64 + 64 + 16); /* no machine code */
	struct image *fit = image_for(image, 90);
	assert_int_equal(fit->size, 16 + 64 + 16);
	assert_memory_equal(fit->bytes + 16, &fatbin.ptx, 64 + 16);
	image_unref(fit);
	image_unref(image);
	fatbin.ptx.kind = FATBIN_ELF;
	assert_null(image_keep(&fatbin, sizeof(fatbin)));
	fatbin.ptx.kind = FATBIN_PTX;
	fatbin.container.size = 1ull << 60; /* more than there is */
	assert_null(image_keep(&fatbin, sizeof(fatbin)));
}

static bool fits(struct fatbin fatbin, unsigned sm)
{
	struct image *image = image_keep(&fatbin, sizeof(fatbin)), *fit = image_for(image, sm);

	bool good = fit != NULL;

	image_unref(image);
	image_unref(fit);
	return good;
}

/* PTX of another architecture than the machine code that runs may be another program. */
static void ptx_is_of_what_runs(void **state)
{
	(void)state;
	assert_true(fits(fatbin_of(90, 0, 90, 0), 90));
	assert_false(fits(fatbin_of(90, 0, 80, 0), 90));
	assert_true(fits(fatbin_of(80, 0, 80, 0), 86));
	assert_false(fits(fatbin_of(80, 0, 86, 0), 86));
	assert_true(fits(fatbin_of(80, 0, 80, 0), 90)); /* the PTX is what runs */
	assert_true(fits(fatbin_of(80, 0, 90, 0), 90));
	assert_false(fits(fatbin_of(90, FATBIN_EXACT, 90, 0), 90));
	assert_true(fits(fatbin_of(90, FATBIN_EXACT, 90, FATBIN_EXACT), 90));
	assert_true(fits(fatbin_of(100, FATBIN_FAMILY, 100, FATBIN_FAMILY), 103));
	assert_true(fits(fatbin_of(100, FATBIN_EXACT, 80, 0), 103));
}

static void texts_become_one(void **state)
{
	struct fatbin fatbin = fatbin_of(90, 0, 90, 0);
	struct image *container = image_keep(&fatbin, sizeof(fatbin));
	struct image *first = image_keep(".version 8.0", 0), *second = image_keep("// more", 0);
	struct image *joined = image_join(first, second);

	(void)state;
	assert_int_equal(joined->size, strlen(".version 8.0\n// more"));
	assert_memory_equal(joined->bytes, ".version 8.0\n// more", joined->size);
	assert_null(image_join(first, container));
	assert_null(image_join(container, second));
	image_unref(joined);
	image_unref(first);
	image_unref(second);
	image_unref(container);
	assert_int_equal(image_total(), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_ptx_is_kept),
		cmocka_unit_test(ptx_is_of_what_runs),
		cmocka_unit_test(texts_become_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
