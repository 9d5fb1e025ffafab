/* The table of session states: what each message means in each state. */
#include "daemon/session-state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	enum weir_check check;
	uint16_t type;
	enum session_state state;
	enum session_action action;
	enum session_state next;
	enum weir_refusal reason;
} messages[] = {
	{WEIR_CHECK_OK, WEIR_HELLO, SESSION_OPEN, SESSION_DO_WELCOME, SESSION_CLIENT, 0},
	{WEIR_CHECK_OK, WEIR_HELLO, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_HELLO, SESSION_AWAITS_LEVEL, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_WELCOME, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_LEVEL, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_COMPILE, SESSION_CLIENT, SESSION_DO_COMPILE, SESSION_CLIENT, 0},
	{WEIR_CHECK_OK, WEIR_COMPILE, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_COMPILE, SESSION_AWAITS_LEVEL, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_COMPILED, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_MEMORY, SESSION_OPEN, SESSION_DO_TELL_ACCOUNT, SESSION_OPEN, 0},
	{WEIR_CHECK_OK, WEIR_MEMORY, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_MEMORY_WAITS, SESSION_OPEN, SESSION_DO_NOTE_WAIT, SESSION_MEMORY_WAIT,
	 0},
	{WEIR_CHECK_OK, WEIR_MEMORY_WAITS, SESSION_MEMORY_WAIT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_MEMORY_WAITS, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_PIPES, SESSION_OPEN, SESSION_DO_TELL_PIPES, SESSION_OPEN, 0},
	{WEIR_CHECK_OK, WEIR_PIPES, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_PIPES, SESSION_AWAITS_PIPES, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_PIPES_ANSWER, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_PROFILE, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_LEARNED, SESSION_CLIENT, SESSION_DO_LEARN, SESSION_CLIENT, 0},
	{WEIR_CHECK_OK, WEIR_LEARNED, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_LEARNED, SESSION_AWAITS_LEVEL, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_WORK, SESSION_CLIENT, SESSION_DO_LOOK, SESSION_CLIENT, 0},
	{WEIR_CHECK_OK, WEIR_WORK, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_WORK, SESSION_AWAITS_LIMIT, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_OK, WEIR_ACCOUNT, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_TYPE, 0, SESSION_OPEN, SESSION_DO_NOTHING, SESSION_OPEN, 0},
	{WEIR_CHECK_TYPE, 0, SESSION_AWAITS_LIMIT, SESSION_DO_NOTHING, SESSION_AWAITS_LIMIT, 0},
	{WEIR_CHECK_TYPE, 0, SESSION_CLIENT, SESSION_DO_NOTHING, SESSION_CLIENT, 0},
	{WEIR_CHECK_SHORT, 0, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_LONG, 0, SESSION_CLIENT, SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_MAGIC, 0, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_VERSION, 0, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE,
	 WEIR_REFUSED_VERSION},
	{WEIR_CHECK_VALUE, 0, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_MESSAGE},
	{WEIR_CHECK_FDS, 0, SESSION_OPEN, SESSION_DO_REFUSE, SESSION_GONE, WEIR_REFUSED_MESSAGE},
};

static void test_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		enum session_event event = session_event_of(messages[i].check, messages[i].type);
		const struct session_step *step = session_next(messages[i].state, event);

		assert_int_equal(step->action, messages[i].action);
		assert_int_equal(step->next, messages[i].next);
		assert_int_equal(step->reason, messages[i].reason);
	}
}

/* The client that waits for news of its pod is answered when they come, or at the deadline. */
static void test_waiting(void **state)
{
	const struct session_step *step = session_next(SESSION_OPEN, SESSION_HELLO_EARLY);

	(void)state;
	assert_int_equal(step->action, SESSION_DO_HURRY_PODS);
	assert_int_equal(step->next, SESSION_AWAITS_LEVEL);
	for (int event = SESSION_POD_KNOWN; event <= SESSION_DEADLINE; event++) {
		step = session_next(SESSION_AWAITS_LEVEL, (enum session_event)event);
		assert_int_equal(step->action, SESSION_DO_WELCOME);
		assert_int_equal(step->next, SESSION_CLIENT);
	}
	step = session_next(SESSION_OPEN, SESSION_MEMORY_EARLY);
	assert_int_equal(step->next, SESSION_AWAITS_LIMIT);
	step = session_next(SESSION_AWAITS_LIMIT, SESSION_POD_KNOWN);
	assert_int_equal(step->action, SESSION_DO_TELL_ACCOUNT);
	step = session_next(SESSION_AWAITS_LIMIT, SESSION_DEADLINE);
	assert_int_equal(step->reason, WEIR_REFUSED_INTERNAL);
	step = session_next(SESSION_OPEN, SESSION_DEADLINE);
	assert_int_equal(step->reason, WEIR_REFUSED_MESSAGE);
}

/* Every state has a step for every event. A refusal has a reason and ends the session. The end of
 * the connection always ends it. */
static void test_table_is_complete(void **state)
{
	(void)state;
	for (int i = 0; i < SESSION_STATES; i++)
		for (int event = 0; event < SESSION_EVENTS; event++) {
			const struct session_step *step =
				session_next((enum session_state)i, (enum session_event)event);
			bool refused = step->action == SESSION_DO_REFUSE;

			assert_int_not_equal(step->action, 0);
			assert_int_equal(refused, step->reason != 0);
			assert_int_equal(refused || event == SESSION_END,
					 step->next == SESSION_GONE);
			assert_true(!refused || step->text || event == SESSION_BAD_VERSION ||
				    event == SESSION_MALFORMED);
		}
}

/* The answer passes the client's own checks. */
static void test_refused(void **state)
{
	struct weir_refused refused = session_refused(WEIR_REFUSED_LIMIT, "full");
	union weir_message message;

	(void)state;
	assert_int_equal(weir_message_check(&message, &refused, sizeof(refused), 0), WEIR_CHECK_OK);
	assert_int_equal(message.refused.reason, WEIR_REFUSED_LIMIT);
	assert_string_equal(message.refused.text, "full");
	assert_string_equal(session_refusal_name(WEIR_REFUSED_LIMIT), "limit");
	assert_string_equal(session_refusal_name(99), "?");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_table_is_complete),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
