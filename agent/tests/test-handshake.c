/* What packets mean, before and after the welcome. */
#include "daemon/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	enum weir_check check;
	uint16_t type;
	bool welcomed;
	enum handshake_action action;
	enum weir_refusal reason;
} cases[] = {
	{WEIR_CHECK_OK, WEIR_HELLO, false, HANDSHAKE_WELCOME, 0},
	{WEIR_CHECK_OK, WEIR_HELLO, true, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_WELCOME, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_LEVEL, true, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_COMPILE, true, HANDSHAKE_COMPILE, 0},
	{WEIR_CHECK_OK, WEIR_COMPILE, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_COMPILED, true, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_MEMORY, false, HANDSHAKE_MEMORY, 0},
	{WEIR_CHECK_OK, WEIR_MEMORY, true, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_WORK, true, HANDSHAKE_WORK, 0},
	{WEIR_CHECK_OK, WEIR_WORK, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_ACCOUNT, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_TYPE, 0, false, HANDSHAKE_IGNORE, 0},
	{WEIR_CHECK_TYPE, 0, true, HANDSHAKE_IGNORE, 0},
	{WEIR_CHECK_SHORT, 0, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_LONG, 0, true, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_MAGIC, 0, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_VERSION, 0, false, HANDSHAKE_REFUSE, WEIR_REFUSED_VERSION},
	{WEIR_CHECK_VALUE, 0, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_FDS, 0, false, HANDSHAKE_REFUSE, WEIR_REFUSED_MESSAGE},
};

static void test_judge(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union weir_message message = {.header.type = cases[i].type};
		struct handshake_verdict verdict;

		handshake_judge(&verdict, cases[i].check, &message, cases[i].welcomed);
		assert_int_equal(verdict.action, cases[i].action);
		if (verdict.action == HANDSHAKE_REFUSE) {
			assert_int_equal(verdict.reason, cases[i].reason);
			assert_true(strlen(verdict.text) > 0);
		}
	}
}

/* The answer passes the client's own checks. */
static void test_refused(void **state)
{
	struct weir_refused refused = handshake_refused(WEIR_REFUSED_LIMIT, "full");
	union weir_message message;

	(void)state;
	assert_int_equal(weir_message_check(&message, &refused, sizeof(refused), 0), WEIR_CHECK_OK);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	assert_string_equal(message.refused.text, "full");
	assert_string_equal(handshake_refusal_name(WEIR_REFUSED_LIMIT), "limit");
	assert_string_equal(handshake_refusal_name((enum weir_refusal)99), "?");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
