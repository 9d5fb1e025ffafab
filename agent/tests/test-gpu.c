/* Bits, demand words and the counts of higher-level clients, on one GPU. */
#include "gpu-fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/gpu/demand-words.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

static void test_ids(void **state)
{
	const char *id = "GPU-00112233-4455-6677-8899-aabbccddeeff";
	uint8_t uuid[16];
	char again[GPU_ID_SIZE];

	(void)state;
	assert_true(gpu_id_parse(id, uuid));
	assert_int_equal(uuid[0], 0x00);
	assert_int_equal(uuid[15], 0xff);
	gpu_id_format(uuid, again);
	assert_string_equal(again, id);
	assert_false(gpu_id_parse("GPU-00112233-4455-6677-8899-aabbccddeef", uuid));
	assert_false(gpu_id_parse("GPU-00112233-4455-6677-8899-aabbccddeegg", uuid));
	assert_false(gpu_id_parse("GPU000112233-4455-6677-8899-aabbccddeeff", uuid));
	assert_false(gpu_id_parse("GPU-00112233-4455-6677-8899aabbccddeeff--", uuid));
	assert_false(gpu_id_parse("", uuid));
}

static void test_above(void **state)
{
	(void)state;
	add(0, 0, WEIR_BIT_NONE);
	add(1, 2, WEIR_BIT_NONE);
	add(2, 3, WEIR_BIT_NONE);
	assert_int_equal(controls[0].above, 2);
	assert_int_equal(controls[1].above, 1);
	assert_int_equal(controls[2].above, 0);
	assert_int_equal(controls[0].below, 0);
	assert_int_equal(controls[1].below, 1);
	assert_int_equal(controls[2].below, 2);
	uint32_t epoch = controls[1].epoch;
	gpu_set_level(&gpu, &clients[2], 1);
	assert_int_equal(controls[0].above, 2);
	assert_int_equal(controls[1].above, 0);
	assert_int_equal(controls[2].above, 1);
	assert_int_equal(controls[2].level, 1);
	assert_int_not_equal(controls[1].epoch, epoch);
	gpu_remove(&gpu, &clients[1], false);
	assert_int_equal(controls[0].above, 1);
	assert_int_equal(controls[2].above, 0);
}

static void test_dead_client_leaves_no_demand(void **state)
{
	(void)state;
	uint8_t a = add(0, 3, WEIR_BIT_NONE), b = add(1, 3, WEIR_BIT_NONE);
	assert_int_not_equal(a, b);
	set_words(1ull << a | 1ull << b);
	gpu_remove(&gpu, &clients[0], false);
	assert_true(word(0) == 1ull << b && word(1) == 1ull << b && word(2) == 1ull << b);
}

static void test_sweep_keeps_owned_bits(void **state)
{
	(void)state;
	uint8_t bit = add(0, 1, WEIR_BIT_NONE);
	set_words(~0ull);
	for (int level = 0; level < 3; level++) {
		atomic_store(&page(level)->whole, ~0ull);
		atomic_store(&page(level)->places, ~0ull);
	}
	gpu_sweep(&gpu, loop_now());
	assert_true(word(0) == 1ull << bit && page(0)->whole == 1ull << bit);
	assert_true(page(0)->places == 1ull << bit && page(1)->places == 0);
	assert_true(word(1) == 0 && word(2) == 0 && page(1)->whole == 0 && page(2)->whole == 0);
}

static void reopen(void)
{
	gpu_close(&gpu);
	memset(gpu.n_level, 0, sizeof(gpu.n_level));
	gpu.clients = NULL;
	gpu.bits = 0;
	assert_int_equal(gpu_open(&gpu, &loop, &root), 0);
}

static void test_claims_after_restart(void **state)
{
	(void)state;
	uint8_t a = add(0, 2, WEIR_BIT_NONE), b = add(1, 2, WEIR_BIT_NONE);
	set_words(1ull << a | 1ull << b);
	reopen();
	/* A new client gets none of the bits that may be claimed, and keeps gating. */
	uint8_t c = add(2, 1, WEIR_BIT_NONE);
	assert_true(c != a && c != b);
	assert_int_equal(controls[2].above, 2);
	assert_int_equal(add(1, 2, b), b);
	assert_true(word(1) == (1ull << a | 1ull << b));
	gpu_sweep(&gpu, loop_now() + GPU_GRACE_NS);
	assert_true(word(0) == 1ull << b && word(1) == 1ull << b && word(2) == 0);
	assert_int_equal(controls[2].above, 1);
	/* Too late: the bit is free for any client. */
	assert_int_equal(add(0, 2, a), a);
}

static void test_claim_of_taken_bit(void **state)
{
	(void)state;
	uint8_t a = add(0, 2, WEIR_BIT_NONE);
	assert_int_not_equal(add(1, 2, a), a);
}

/* Each client has a container of its own. */
static void test_shared_bit(void **state)
{
	static struct tenant *tenants[65]; /* only their addresses matter */

	(void)state;
	for (int i = 0; i < 65; i++)
		clients[i].tenant = (struct tenant *)&tenants[i];
	for (int i = 0; i < 63; i++)
		assert_true(add(i, 3, WEIR_BIT_NONE) < WEIR_BITS_OWN);
	assert_true(gpu.bits_refused == 0);
	assert_int_equal(add(63, 2, WEIR_BIT_NONE), WEIR_BIT_SHARED);
	assert_int_equal(add(64, 1, 5), WEIR_BIT_SHARED);
	demand_words_share(&gpu);
	assert_true(word(0) == 0);
	statuses[64].level = 1;
	statuses[63].level = 2;
	statuses[64].outstanding = 1;
	demand_words_share(&gpu);
	assert_true(word(0) == 1ull << 63 && word(1) == 0 && page(0)->whole == 1ull << 63);
	statuses[63].outstanding = 1;
	demand_words_share(&gpu);
	assert_true(word(0) == 1ull << 63 && word(1) == 1ull << 63 && word(2) == 0);
	gpu_remove(&gpu, &clients[63], false);
	assert_true(word(0) == 1ull << 63 && word(1) == 0);
	gpu_remove(&gpu, &clients[64], false);
	assert_true(word(0) == 0 && page(0)->whole == 0);
	assert_true(gpu.bits_refused == 2);
	/* A bit is free again when its owner is gone. */
	gpu_remove(&gpu, &clients[7], false);
	assert_true(add(65, 1, WEIR_BIT_NONE) < WEIR_BITS_OWN);
}

/* However many a container has taken, the next one finds some. */
static void test_bits_are_a_quota(void **state)
{
	static struct tenant *tenants[3];
	unsigned own = 0;

	(void)state;
	for (int i = 0; i < 80; i++)
		clients[i].tenant = (struct tenant *)&tenants[i / 40];
	for (int i = 0; i < 40; i++)
		own += add(i, 1, WEIR_BIT_NONE) < WEIR_BITS_OWN;
	assert_int_equal(own, 32);
	for (int i = 40; i < 79; i++)
		own += add(i, 1, WEIR_BIT_NONE) < WEIR_BITS_OWN;
	assert_int_equal(own, 48);
	clients[79].tenant = (struct tenant *)&tenants[2];
	assert_true(add(79, 2, WEIR_BIT_NONE) < WEIR_BITS_OWN);
}

/* It needs one when it is raised. A library that cannot be told shares one. */
static void test_raised_client_gets_a_bit(void **state)
{
	(void)state;
	assert_int_equal(add(0, 0, WEIR_BIT_NONE), WEIR_BIT_SHARED);
	assert_int_equal(add(1, 0, 5), WEIR_BIT_SHARED);
	clients[0].takes_bit = true;
	assert_int_equal(gpu.n_shared, 0);
	gpu_set_level(&gpu, &clients[0], 1);
	gpu_set_level(&gpu, &clients[1], 1);
	assert_true(clients[0].bit < WEIR_BITS_OWN && clients[0].tell);
	assert_int_equal(clients[1].bit, WEIR_BIT_SHARED);
	assert_int_equal(gpu.n_shared, 1);
	statuses[1].outstanding = 1;
	demand_words_share(&gpu);
	assert_true(word(0) == 0); /* its own gates of level 0 wait for that word */
	statuses[1].level = 1;
	demand_words_share(&gpu);
	assert_true(word(0) == 1ull << WEIR_BIT_SHARED);
	gpu_set_level(&gpu, &clients[1], 0);
	assert_true(word(0) == 0);
}

/* A bit without work is another's doing. Its owner is asked. */
static void test_unclaimed_bits_are_cleared(void **state)
{
	uint64_t now = loop_now();

	(void)state;
	uint64_t a = 1ull << add(0, 2, WEIR_BIT_NONE), b = 1ull << add(1, 2, WEIR_BIT_NONE);
	statuses[1].outstanding = 1;
	set_words(a | b);
	gpu_sweep(&gpu, now);
	assert_true(word(0) == (a | b)); /* it may have been set just now */
	statuses[0].outstanding = 1;
	gpu_sweep(&gpu, now + DEMAND_WORDS_CLAIM_NS);
	statuses[0].outstanding = 0;
	gpu_sweep(&gpu, now + 2 * DEMAND_WORDS_CLAIM_NS);
	assert_true(word(0) == (a | b)); /* that was its work */
	gpu_sweep(&gpu, now + 3 * DEMAND_WORDS_CLAIM_NS);
	assert_true(word(0) == b && word(1) == b);
}

static unsigned told; /* bit i: clients[i] */

static void note_told(const struct client *client)
{
	told |= 1u << (client - clients);
}

static ino_t inode(unsigned level)
{
	struct stat info;

	assert_int_equal(fstat(gpu.region.pages[level].writable, &info), 0);
	return info.st_ino;
}

/* Its demand goes to the new page; the former page's gates open. */
static void test_lost_right_renews_pages(void **state)
{
	ino_t before[3] = {inode(0), inode(1), inode(2)};
	struct weir_demand_page *former[3];

	(void)state;
	uint64_t a = 1ull << add(0, 3, WEIR_BIT_NONE), b = 1ull << add(1, 3, WEIR_BIT_NONE);
	add(2, 1, WEIR_BIT_NONE);
	add(3, 0, WEIR_BIT_NONE);
	statuses[0].outstanding = statuses[1].outstanding = 1;
	for (int i = 0; i < 4; i++)
		clients[i].tell_level = note_told;
	for (int level = 0; level < 3; level++)
		former[level] = gpu.region.pages[level].demand;
	set_words(a | b);
	gpu_set_level(&gpu, &clients[0], 1);
	told = 0;
	gpu_tell(&gpu);
	assert_true(inode(0) == before[0]);
	assert_true(inode(1) != before[1] && inode(2) != before[2]);
	assert_true(word(0) == (a | b) && word(1) == b && word(2) == b && page(1)->whole == b);
	assert_int_equal(told, 1 << 0 | 1 << 1 | 1 << 2);
	gpu_sweep(&gpu, loop_now());
	assert_true(former[1]->word == 0 && former[2]->word == 0);
	assert_true(word(1) == b);
}

/* Somebody is lowered again and again: the others keep room for pages. */
static void test_renewals_are_limited(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GPU_RENEWALS; i++) {
		ino_t before = inode(0);
		gpu_revoke(&gpu, 0, 1);
		gpu_tell(&gpu);
		assert_true(inode(0) != before);
	}
	ino_t last = inode(0);
	gpu_revoke(&gpu, 0, 1);
	gpu_tell(&gpu);
	assert_true(inode(0) == last);
	gpu.renew_from = 0; /* later */
	gpu_sweep(&gpu, loop_now());
	assert_true(inode(0) != last);
}

/* The agent was away while its level was lowered, or it does not come back. */
static void test_rights_end_over_a_restart(void **state)
{
	ino_t before[3] = {inode(0), inode(1), inode(2)};

	(void)state;
	uint8_t a = add(0, 2, WEIR_BIT_NONE), b = add(1, 3, WEIR_BIT_NONE);
	reopen();
	assert_int_equal(add(1, 3, b), b);
	assert_true(inode(0) == before[0] && inode(1) == before[1] && inode(2) == before[2]);
	assert_int_equal(add(0, 1, a), a);
	assert_true(inode(0) == before[0] && inode(1) != before[1] && inode(2) == before[2]);
	before[1] = inode(1);
	/* Nobody claims a bit. */
	reopen();
	assert_true(inode(1) == before[1]);
	gpu_sweep(&gpu, loop_now() + GPU_GRACE_NS);
	assert_true(inode(0) != before[0] && inode(1) != before[1] && inode(2) != before[2]);
}

/* Other clients come and go all the time, each with a grace period of its own. */
static void test_swept_while_others_come_and_go(void **state)
{
	uint64_t begun, now;

	(void)state;
	add(0, 3, 5);
	gpu_remove(&gpu, &clients[0], true);
	set_words(1 << 5);
	gpu_close(&gpu);
	memset(&gpu, 0, sizeof(gpu));
	gpu_id_format(gpu.uuid, gpu.id);
	assert_int_equal(gpu_open(&gpu, &loop, &root), 0);
	assert_true(gpu.reserved == 1 << 5);
	begun = now = loop_now();
	while (now < begun + 10 * GPU_GRACE_NS && word(0)) {
		add(1, 0, WEIR_BIT_NONE);
		gpu_remove(&gpu, &clients[1], false);
		loop_step(&loop, 100);
		usleep(50000);
		now = loop_now();
	}
	assert_true(word(0) == 0);
	assert_true(gpu.reserved == 0);
	/* Not before. */
	assert_true(now - begun >= GPU_GRACE_NS / 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		GPU_TEST(test_above),
		GPU_TEST(test_dead_client_leaves_no_demand),
		GPU_TEST(test_sweep_keeps_owned_bits),
		GPU_TEST(test_claims_after_restart),
		GPU_TEST(test_claim_of_taken_bit),
		GPU_TEST(test_swept_while_others_come_and_go),
		GPU_TEST(test_shared_bit),
		GPU_TEST(test_bits_are_a_quota),
		GPU_TEST(test_raised_client_gets_a_bit),
		GPU_TEST(test_unclaimed_bits_are_cleared),
		GPU_TEST(test_lost_right_renews_pages),
		GPU_TEST(test_renewals_are_limited),
		GPU_TEST(test_rights_end_over_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
