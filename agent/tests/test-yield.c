/* What pods ask lower levels to leave to them: its syntax. */
#include "policy/yield.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
	const char *text;
	uint32_t yield;
	const char *again;
} yields[] = {
	{"auto", YIELD_AUTO, "auto"},
	{"whole", YIELD_WHOLE, "whole"},
	{"needed", YIELD_NEEDED, "needed"},
	{"needed+0%", YIELD_NEEDED, "needed"},
	{"needed+1%", 2, "needed+1%"},
	{"needed+25%", 26, "needed+25%"},
	{"needed+100%", 101, "needed+100%"},
	{"needed+0025%", 26, "needed+25%"},
	{"1", WEIR_YIELD_NUMBER + 1, "1"},
	{"16", WEIR_YIELD_NUMBER + 16, "16"},
	{"9999", WEIR_YIELD_NUMBER + 9999, "9999"},
};

static const char *const no_yields[] = {
	"",
	"all",
	"Whole",
	"default",
	"auto+25%",
	"whole ",
	" needed",
	"needed+",
	"measured",
	"needed+%",
	"needed+25",
	"needed25%",
	"needed+-1%",
	"needed+ 5%",
	"needed++5%",
	"needed+101%",
	"needed+2.5%",
	"needed+25%%",
	"needed+0x1%",
	"needed+25%,whole",
	"needed+4294967297%",
	"needed+00000000000000000...",
	"0",
	"-1",
	"16 SMs",
	"10000",
	"4294967297",
};

static void parses(void **state)
{
	char text[YIELD_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(yields) / sizeof(yields[0]); i++) {
		uint32_t yield = 77;
		assert_true(yield_parse(yields[i].text, &yield));
		assert_int_equal(yield, yields[i].yield);
		assert_string_equal(yield_format(yield, text), yields[i].again);
	}
	for (size_t i = 0; i < sizeof(no_yields) / sizeof(no_yields[0]); i++) {
		uint32_t yield = 77;
		assert_false(yield_parse(no_yields[i], &yield));
		assert_int_equal(yield, 77);
	}
}

static void counts_sms(void **state)
{
	(void)state;
	assert_int_equal(yield_sms(YIELD_NEEDED, 10), 10);
	assert_int_equal(yield_sms(YIELD_NEEDED + 25, 10), 13);
	assert_int_equal(yield_sms(WEIR_YIELD_NUMBER + 4, 10), 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(parses),
						  cmocka_unit_test(counts_sms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
