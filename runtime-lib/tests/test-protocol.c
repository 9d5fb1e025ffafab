/* Malformed messages are refused, and descriptors never leak. */
#include "descriptors.h"

#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct weir_hello good_hello(void)
{
	struct weir_hello hello = {.claimed_bit = WEIR_BIT_NONE};

	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	memset(hello.library, 'x', sizeof(hello.library));
	return hello;
}

static void accepts_what_is_well_formed(void **state)
{
	struct weir_hello hello = good_hello();
	union weir_message out;

	(void)state;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_OK);
	assert_int_equal(strlen(out.hello.library), sizeof(hello.library) - 1); /* ended by force */
}

static void accepts_a_later_and_longer_version(void **state)
{
	uint8_t packet[sizeof(struct weir_hello) + 40] = {0};
	struct weir_hello hello = good_hello();
	union weir_message out;

	(void)state;
	hello.header.version = 9;
	hello.header.size = sizeof(packet);
	memcpy(packet, &hello, sizeof(hello));
	assert_int_equal(weir_message_check(&out, packet, sizeof(packet), 0), WEIR_CHECK_OK);
	assert_int_equal(out.header.version, 9);
}

static void refuses_each_fault(void **state)
{
	struct weir_hello hello = good_hello();
	uint8_t large[WEIR_MESSAGE_MAX + 1] = {0};
	union weir_message out;

	(void)state;
	assert_int_equal(weir_message_check(&out, &hello, 5, 0), WEIR_CHECK_SHORT);
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello) - 1, 0), WEIR_CHECK_SHORT);
	assert_int_equal(weir_message_check(&out, large, sizeof(large), 0), WEIR_CHECK_LONG);
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 1), WEIR_CHECK_FDS);
	hello.header.size = 20;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_LONG);
	assert_int_equal(weir_message_check(&out, &hello, 20, 0), WEIR_CHECK_SHORT);
	hello = good_hello();
	hello.header.magic++;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_MAGIC);
	hello = good_hello();
	hello.header.version = 0;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_VERSION);
	hello = good_hello();
	hello.header.type = 99;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_TYPE);
	hello = good_hello();
	hello.claimed_bit = 64;
	assert_int_equal(weir_message_check(&out, &hello, sizeof(hello), 0), WEIR_CHECK_VALUE);
}

static void levels_need_their_pages(void **state)
{
	static const size_t wanted[WEIR_LEVELS] = {1, 2, 3, 3};
	struct weir_level level = {0};
	union weir_message out;

	(void)state;
	weir_header_init(&level.header, WEIR_LEVEL, sizeof(level));
	for (uint8_t i = 0; i < WEIR_LEVELS; i++) {
		level.level = i;
		for (size_t fds = 0; fds <= WEIR_FDS_MAX; fds++)
			assert_int_equal(weir_message_check(&out, &level, sizeof(level), fds),
					 fds == wanted[i] ? WEIR_CHECK_OK : WEIR_CHECK_FDS);
	}
	level.level = WEIR_LEVELS;
	assert_int_equal(weir_message_check(&out, &level, sizeof(level), 3), WEIR_CHECK_VALUE);
}

static void an_account_is_a_slot_and_two_pages(void **state)
{
	struct weir_account account = {.slot = WEIR_MEMORY_SLOTS - 1};
	struct weir_memory memory = {0};
	union weir_message out;

	(void)state;
	weir_header_init(&memory.header, WEIR_MEMORY, sizeof(memory));
	assert_int_equal(weir_message_check(&out, &memory, sizeof(memory), 0), WEIR_CHECK_OK);
	assert_int_equal(weir_message_check(&out, &memory, sizeof(memory), 1), WEIR_CHECK_FDS);
	struct weir_memory_waits waits = {0};
	weir_header_init(&waits.header, WEIR_MEMORY_WAITS, sizeof(waits));
	assert_int_equal(weir_message_check(&out, &waits, sizeof(waits), 0), WEIR_CHECK_OK);
	assert_int_equal(weir_message_check(&out, &waits, sizeof(waits), 1), WEIR_CHECK_FDS);
	weir_header_init(&account.header, WEIR_ACCOUNT, sizeof(account));
	for (size_t fds = 0; fds <= WEIR_FDS_MAX; fds++)
		assert_int_equal(weir_message_check(&out, &account, sizeof(account), fds),
				 fds == 2 ? WEIR_CHECK_OK : WEIR_CHECK_FDS);
	account.slot = WEIR_MEMORY_SLOTS;
	assert_int_equal(weir_message_check(&out, &account, sizeof(account), 2), WEIR_CHECK_VALUE);
}

static void a_profile_has_few_entries(void **state)
{
	struct weir_profile_message profile = {.n = WEIR_PROFILE_ENTRIES};
	struct weir_learned learned = {0};
	union weir_message out;

	(void)state;
	weir_header_init(&profile.header, WEIR_PROFILE, sizeof(profile));
	assert_int_equal(weir_message_check(&out, &profile, sizeof(profile), 0), WEIR_CHECK_OK);
	assert_int_equal(weir_message_check(&out, &profile, sizeof(profile), 1), WEIR_CHECK_FDS);
	profile.n++;
	assert_int_equal(weir_message_check(&out, &profile, sizeof(profile), 0), WEIR_CHECK_VALUE);
	weir_header_init(&learned.header, WEIR_LEARNED, sizeof(learned));
	assert_int_equal(weir_message_check(&out, &learned, sizeof(learned), 0), WEIR_CHECK_OK);
	assert_int_equal(weir_message_check(&out, &learned, sizeof(learned), 1), WEIR_CHECK_FDS);
}

/* Each fault alone makes a profile insane. */
static void profiles_are_checked_for_range(void **state)
{
	static const struct weir_profile good = {
		.geometry = {{1000, 1, 1}, {256, 4, 1}, 4096, 132, 100, 0},
		.native = 5000000,
		.eviction_cost = 20000,
		.samples = 5,
		.choices = {{0}, {.form = 2, .chunk = 8, .workers = 264, .ratio = 1010000}},
	};
	struct weir_profile bad;

	(void)state;
	assert_true(weir_profile_is_sane(&good));
#define INSANE(change)                                    \
	do {                                              \
		bad = good;                               \
		bad.change;                               \
		assert_false(weir_profile_is_sane(&bad)); \
	} while (0)
	INSANE(geometry.grid[2] = 0);
	INSANE(geometry.grid[1] = INT32_MAX);
	INSANE(geometry.block[0] = 0);
	INSANE(geometry.block[2] = 2);
	INSANE(geometry.shared = UINT32_MAX);
	INSANE(geometry.sms = 0);
	INSANE(geometry.sms = UINT32_MAX);
	INSANE(geometry.latency = 0);
	INSANE(geometry.latency = UINT32_MAX);
	INSANE(geometry.reserved0 = 1);
	INSANE(native = 0);
	INSANE(native = UINT64_MAX);
	INSANE(eviction_cost = UINT64_MAX);
	INSANE(yields = WEIR_YIELDS_WHOLE + 1);
	INSANE(choices[0].chunk = 1);
	INSANE(choices[0].ratio = 1);
	INSANE(choices[1].form = WEIR_STATUS_FORMS);
	INSANE(choices[1].build = 255);
	INSANE(choices[1].flags = 4);
	INSANE(choices[1].reserved0 = 1);
	INSANE(choices[1].chunk = 0);
	INSANE(choices[1].chunk = UINT32_MAX);
	INSANE(choices[1].workers = 0);
	INSANE(choices[1].workers = UINT32_MAX);
	INSANE(choices[1].ratio = 0);
	INSANE(choices[1].ratio = UINT32_MAX);
}

static void refused_packets_leak_nothing(void **state)
{
	struct weir_hello hello = good_hello();
	union weir_message out;
	int pair[2], fds[WEIR_FDS_MAX];
	size_t n;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	int before = open_descriptors();
	for (size_t i = 0; i < WEIR_FDS_MAX; i++)
		fds[i] = STDERR_FILENO;
	assert_int_equal(weir_message_send(pair[0], &hello, sizeof(hello), fds, WEIR_FDS_MAX), 0);
	assert_int_equal(weir_message_receive(pair[1], &out, fds, &n), WEIR_CHECK_FDS);
	assert_int_equal(open_descriptors(), before);

	assert_int_equal(weir_message_receive(pair[1], &out, fds, &n), -EAGAIN);
	close(pair[0]);
	assert_int_equal(weir_message_receive(pair[1], &out, fds, &n), -EPIPE);
	assert_int_equal(weir_message_send(pair[1], &hello, sizeof(hello), NULL, 0), -EPIPE);
	close(pair[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_what_is_well_formed),
		cmocka_unit_test(accepts_a_later_and_longer_version),
		cmocka_unit_test(refuses_each_fault),
		cmocka_unit_test(levels_need_their_pages),
		cmocka_unit_test(an_account_is_a_slot_and_two_pages),
		cmocka_unit_test(a_profile_has_few_entries),
		cmocka_unit_test(profiles_are_checked_for_range),
		cmocka_unit_test(refused_packets_leak_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
