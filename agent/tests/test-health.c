/* A GPU becomes unhealthy and healthy again, on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"
#include "weir/health.h"

#define T    1000000000000ull /* an arbitrary time, ns */
#define REST (60 * 1000000000ull)

static const struct health_settings *const settings = &health_defaults;

static void expect_reason(const struct health *health, uint64_t now, const char *expected)
{
	char reason[HEALTH_REASON_MAX];

	health_reason(health, now, reason);
	assert_string_equal(reason, expected);
}

static void the_table_says_what_an_error_means(void **state)
{
	static const struct {
		uint64_t xid;
		enum xid_meaning meaning;
	} known[] = {
		{13, XID_HARMLESS}, {31, XID_HARMLESS}, {43, XID_HARMLESS}, {45, XID_HARMLESS},
		{63, XID_HARMLESS}, {68, XID_HARMLESS}, {94, XID_HARMLESS}, {154, XID_HARMLESS},
		{74, XID_REST},     {109, XID_REST},    {48, XID_RESET},    {62, XID_RESET},
		{64, XID_RESET},    {79, XID_RESET},    {95, XID_RESET},    {119, XID_RESET},
		{120, XID_RESET},   {1, XID_REST},      {999, XID_REST},    {UINT64_MAX, XID_REST},
	};

	(void)state;
	for (size_t i = 0; i < countof(known); i++)
		assert_int_equal(xid_meaning(known[i].xid), known[i].meaning);
	assert_string_equal(xid_name(79), "GPU has fallen off the bus");
	assert_string_equal(xid_name(999), "not in the table");
}

static void an_unclear_error_ends_by_itself(void **state)
{
	struct health health = {0};

	(void)state;
	assert_true(health_good(&health, T));
	expect_reason(&health, T, "good");
	assert_true(health_xid(&health, settings, 74, T));
	assert_false(health_good(&health, T));
	expect_reason(&health, T, "XID 74 (NVLink error)");
	assert_false(health_good(&health, T + REST - 1));
	assert_true(health_good(&health, T + REST));
}

static void a_second_error_prolongs_it(void **state)
{
	struct health health = {0};

	(void)state;
	health_xid(&health, settings, 74, T);
	health_xid(&health, settings, 74, T + REST / 2);
	assert_false(health_good(&health, T + REST));
	assert_true(health_good(&health, T + REST + REST / 2));
}

static void harmless_and_ignored_errors_change_nothing(void **state)
{
	static const struct health_settings ignoring = {
		.ignored_xids = {79, 7}, .n_ignored_xids = 2, .recovery = 60, .ecc = true};
	struct health health = {0};

	(void)state;
	assert_false(health_xid(&health, settings, 31, T));
	assert_false(health_xid(&health, &ignoring, 79, T));
	assert_true(health_good(&health, T));
	assert_true(health_xid(&health, &ignoring, 95, T));
}

static void after_some_errors_only_a_reset_helps(void **state)
{
	struct health health = {0};

	(void)state;
	assert_true(health_xid(&health, settings, 95, T));
	assert_false(health_good(&health, T + 1000 * REST));
	expect_reason(&health, T + 1000 * REST,
		      "XID 95 (uncontained memory error), until it is reset");
	/* A GPU that does not answer for a moment was not reset. */
	health_asked(&health, HEALTH_SILENT);
	health_asked(&health, HEALTH_ANSWERS);
	assert_false(health_good(&health, T + 1000 * REST));
	health_asked(&health, HEALTH_LOST);
	health_asked(&health, HEALTH_SILENT);
	health_asked(&health, HEALTH_ANSWERS);
	assert_false(health_good(&health, T + REST - 1));
	assert_true(health_good(&health, T + REST));
}

static void a_lower_error_count_means_a_reset(void **state)
{
	struct health health = {0};

	(void)state;
	health_errors(&health, settings, 5, T);
	assert_true(health_good(&health, T)); /* these errors are older than the program */
	health_xid(&health, settings, 48, T);
	health_errors(&health, settings, 6, T);
	expect_reason(&health, T, "XID 48 (double bit ECC error), until it is reset");
	assert_false(health_good(&health, T + 2 * REST));
	health_errors(&health, settings, 0, T + 2 * REST);
	assert_true(health_good(&health, T + 2 * REST));
}

static void new_memory_errors_make_it_unhealthy_for_a_while(void **state)
{
	static const struct health_settings careless = {.recovery = 60, .ecc = false};
	struct health health = {0};

	(void)state;
	health_errors(&health, settings, 0, T);
	health_errors(&health, settings, 1, T);
	assert_false(health_good(&health, T + REST - 1));
	expect_reason(&health, T, "uncorrected memory errors");
	assert_true(health_good(&health, T + REST));
	health_errors(&health, &careless, 2, T + REST);
	health_remap(&health, &careless, true);
	assert_true(health_good(&health, T + REST));
	health_remap(&health, settings, true);
	assert_false(health_good(&health, T + 1000 * REST));
	expect_reason(&health, T, "rows of its memory could not be remapped");
}

static void the_drivers_action_overrides_the_table(void **state)
{
	struct health health = {0};

	(void)state;
	health_action(&health, 0);
	health_xid(&health, settings, 95, T);
	assert_false(health_good(&health, T));
	assert_true(health_good(&health, T + REST));
	health_action(&health, 1);
	assert_false(health_good(&health, T + 1000 * REST));
	expect_reason(&health, T, "the driver wants a reset of the GPU");
	health_action(&health, 77);
	expect_reason(&health, T, "the driver wants a recovery");
	health_action(&health, 0);
	assert_true(health_good(&health, T + 1000 * REST));
}

static void a_silent_gpu_is_unhealthy_until_it_answers(void **state)
{
	struct health health = {0};

	(void)state;
	health_asked(&health, HEALTH_SILENT);
	assert_false(health_good(&health, T));
	expect_reason(&health, T, "it does not answer");
	health_asked(&health, HEALTH_ANSWERS);
	assert_true(health_good(&health, T));
	health_asked(&health, HEALTH_LOST);
	expect_reason(&health, T, "the driver has lost it");
	health_xid(&health, settings, 74, T);
	health_asked(&health, HEALTH_ANSWERS);
	assert_false(health_good(&health, T));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_says_what_an_error_means),
		cmocka_unit_test(an_unclear_error_ends_by_itself),
		cmocka_unit_test(a_second_error_prolongs_it),
		cmocka_unit_test(harmless_and_ignored_errors_change_nothing),
		cmocka_unit_test(after_some_errors_only_a_reset_helps),
		cmocka_unit_test(a_lower_error_count_means_a_reset),
		cmocka_unit_test(new_memory_errors_make_it_unhealthy_for_a_while),
		cmocka_unit_test(the_drivers_action_overrides_the_table),
		cmocka_unit_test(a_silent_gpu_is_unhealthy_until_it_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
