/* Bits, demand words and the counts of higher-level clients, on one GPU. */
#include "scheduler/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/yield.h"
#include "scheduler/client.h"
#include "scheduler/sms.h"
#include "scheduler/tenants.h"
#include "scheduler/yields.h"

#include "weir/base.h"

static char folder[] = "/tmp/weir-test-XXXXXX";
static struct folder root;
static struct loop loop;
static struct gpu gpu;
static struct weir_control_page controls[80];
static struct weir_status_page statuses[80];
static struct client clients[80];

static int open_all(void **state)
{
	(void)state;
	memset(&gpu, 0, sizeof(gpu));
	memset(controls, 0, sizeof(controls));
	memset(statuses, 0, sizeof(statuses));
	memset(clients, 0, sizeof(clients));
	gpu_format_id(gpu.uuid, gpu.id);
	for (size_t i = 0; i < countof(clients); i++) {
		clients[i].pages = (struct region_pages){&controls[i], &statuses[i], -1, -1};
		clients[i].says_whole = true;
	}
	if (loop_init(&loop) < 0 || region_root_init(&root, folder) < 0)
		return -1;
	return gpu_open(&gpu, &loop, &root);
}

static int close_all(void **state)
{
	(void)state;
	gpu_close(&gpu);
	region_remove(&root, gpu.id);
	folder_close(&root);
	loop_deinit(&loop);
	return 0;
}

static uint8_t add(int i, uint8_t level, uint8_t claim)
{
	clients[i].level = level;
	gpu_add(&gpu, &clients[i], claim);
	return clients[i].bit;
}

static uint64_t word(int level)
{
	return atomic_load(&gpu.region.pages[level].demand->word);
}

static void set_words(uint64_t value)
{
	for (int level = 0; level < 3; level++)
		atomic_store(&gpu.region.pages[level].demand->word, value);
}

static struct weir_demand_page *page(int level)
{
	return gpu.region.pages[level].demand;
}

static void test_ids(void **state)
{
	const char *id = "GPU-00112233-4455-6677-8899-aabbccddeeff";
	uint8_t uuid[16];
	char again[GPU_ID_SIZE];

	(void)state;
	assert_true(gpu_parse_id(id, uuid));
	assert_int_equal(uuid[0], 0x00);
	assert_int_equal(uuid[15], 0xff);
	gpu_format_id(uuid, again);
	assert_string_equal(again, id);
	assert_false(gpu_parse_id("GPU-00112233-4455-6677-8899-aabbccddeef", uuid));
	assert_false(gpu_parse_id("GPU-00112233-4455-6677-8899-aabbccddeegg", uuid));
	assert_false(gpu_parse_id("GPU000112233-4455-6677-8899-aabbccddeeff", uuid));
	assert_false(gpu_parse_id("GPU-00112233-4455-6677-8899aabbccddeeff--", uuid));
	assert_false(gpu_parse_id("", uuid));
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

static void test_dead_client_needs_no_sms(void **state)
{
	(void)state;
	uint8_t a = add(0, 3, WEIR_BIT_NONE), b = add(1, 2, WEIR_BIT_NONE);
	set_words(1ull << a | 1ull << b);
	statuses[0].outstanding = statuses[1].outstanding = 1;
	statuses[0].level = 3;
	statuses[1].level = 2;
	statuses[0].demand_sms = 20;
	statuses[1].demand_sms = 12;
	for (int level = 0; level < 3; level++)
		atomic_store(&page(level)->sms, 32);
	gpu_remove(&gpu, &clients[0], false);
	assert_true(page(0)->sms == 32); /* it may have been about to take its part away */
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 12 && page(1)->sms == 12 && page(2)->sms == 0);
	/* Only the bits that are not in `whole` count. */
	atomic_store(&page(0)->whole, 1ull << b);
	gpu_sweep(&gpu, loop_now());
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 0 && page(1)->sms == 12);
}

/* A sum that grows between two looks is left alone. */
static void test_changing_sms_are_kept(void **state)
{
	(void)state;
	uint8_t a = add(0, 3, WEIR_BIT_NONE);
	set_words(1ull << a);
	statuses[0].outstanding = 1;
	statuses[0].level = 3;
	for (uint32_t n = 1; n < 10; n++) {
		statuses[0].demand_sms = n; /* and not added yet */
		gpu_sweep(&gpu, loop_now());
		assert_true(page(0)->sms == n - 1);
		atomic_store(&page(0)->sms, n);
		gpu_sweep(&gpu, loop_now());
		assert_true(page(0)->sms == n);
	}
}

/* The part of a paused client stays in the sum, and it comes back as one that needs a part. */
static void test_paused_client_keeps_its_part(void **state)
{
	(void)state;
	uint64_t a = 1ull << add(0, 3, WEIR_BIT_NONE), b = 1ull << add(1, 3, WEIR_BIT_NONE);
	set_words(a | b);
	atomic_store(&page(0)->whole, b);
	atomic_store(&page(0)->sms, 9);
	statuses[0].outstanding = statuses[1].outstanding = 1;
	statuses[0].level = statuses[1].level = 3;
	statuses[0].demand_sms = 9;
	gpu_pause(&gpu, &clients[0], true);
	gpu_pause(&gpu, &clients[1], true);
	assert_true(word(0) == 0 && page(0)->whole == 0);
	gpu_sweep(&gpu, loop_now());
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->sms == 9);
	gpu_pause(&gpu, &clients[0], false);
	gpu_pause(&gpu, &clients[1], false);
	assert_true(word(0) == (a | b) && page(0)->whole == b);
}

/* Of a client under MPS. */
static void add_concurrent(int i, uint8_t level, uint32_t yield)
{
	clients[i].yield = yield;
	statuses[i].level = level;
	statuses[i].flags = WEIR_STATUS_CONCURRENT;
	statuses[i].gpu_sms = 132;
	add(i, level, WEIR_BIT_NONE);
}

static bool is_spatial(int i)
{
	return controls[i].flags & WEIR_CONTROL_SPATIAL;
}

static void test_who_may_rely_on_whole(void **state)
{
	struct channels_client server;

	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 1, 0);
	assert_false(is_spatial(0)); /* nobody above yields less than the whole GPU */
	add_concurrent(2, 2, 1);
	assert_true(is_spatial(0) && is_spatial(1));
	assert_false(is_spatial(2)); /* nobody is above it */

	/* Before a client of an older libweir can show demand. */
	clients[3].says_whole = false;
	add_concurrent(3, 3, 0);
	assert_false(is_spatial(0) || is_spatial(1) || is_spatial(2));
	gpu_remove(&gpu, &clients[3], false);
	assert_true(is_spatial(0) && is_spatial(1));
	/* One of which it is known at once takes nothing away. */
	clients[4].comes_concurrent = true;
	add(4, 3, WEIR_BIT_NONE);
	assert_true(is_spatial(0) && is_spatial(1));
	gpu_remove(&gpu, &clients[4], false);
	gpu_set_level(&gpu, &clients[1], 3); /* it is above the others */
	assert_true(is_spatial(0));
	assert_false(is_spatial(1) || is_spatial(2));

	/* Where it counts: time-sliced, or with a server of another level. */
	statuses[2].flags = 0;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_false(is_spatial(0) || is_spatial(1));
	statuses[2].flags = statuses[1].flags = WEIR_STATUS_CONCURRENT;
	statuses[0].flags = 0;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(0));
	assert_true(is_spatial(1));
	gpu.servers[2] = &server;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_false(is_spatial(0) || is_spatial(1));
	gpu.servers[2] = NULL;

	/* A client may come back after a restart, with any libweir. */
	gpu.reserved = 1 << 20;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(1));
	gpu.reserved = 0;
	gpu_set_level(&gpu, &clients[1], 1);
	assert_true(is_spatial(1));
	clients[2].yield = 0;
	gpu_set_level(&gpu, &clients[1], 0);
	assert_false(is_spatial(1));
}

/* One look of the agent, a quarter of a second later; the client's launches take @slower times as
 * long with some SMs as with all. */
static void look_at_yields(uint64_t *now, int i, double slower)
{
	size_t kind = controls[i].yield ? WEIR_YIELD_SOME : WEIR_YIELD_ALL;

	statuses[i].yield_samples[kind] += YIELD_TRIAL_SAMPLES;
	statuses[i].yield_predicted[kind] += 1000000;
	statuses[i].yield_measured[kind] +=
		kind == WEIR_YIELD_SOME ? (uint64_t)(1e6 * slower) : 1000000;
	*now += YIELDS_LOOK_NS;
	uint64_t next = *now + YIELDS_LOOK_NS;
	assert_true(yields_look(&gpu, *now) == next);
	assert_true(yields_look(&gpu, *now + 1) == next); /* not yet */
}

/* SMs that do not help the client that asked for them are not all that lower levels leave. */
static void test_slow_work_gets_the_whole_gpu(void **state)
{
	struct tenant tenant = {.container = "server"};
	uint64_t now = loop_now();

	(void)state;
	clients[1].tenant = &tenant;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 2, YIELD_MEASURED);
	add_concurrent(2, 3, 0);
	statuses[0].outstanding = 1;
	yields_tell(&clients[1]);
	assert_int_equal(controls[1].yield, YIELD_NEEDED);
	bool compares = false;
	for (unsigned i = 0; i < 40; i++) {
		look_at_yields(&now, 1, 1.7);
		compares |= (controls[1].flags & WEIR_CONTROL_COMPARES) != 0;
		/* Without SMs that nobody needs, but still with `whole`. */
		gpu_tell_spatial(&gpu);
	}
	assert_true(compares && !(controls[1].flags & WEIR_CONTROL_COMPARES));
	assert_int_equal(controls[1].yield, 0);
	assert_true(clients[1].yield_trial.needs_all);
	assert_int_equal(controls[2].yield, 0);
	assert_false(controls[2].flags & WEIR_CONTROL_COMPARES);
	/* The next comparison finds them to be enough. */
	for (unsigned i = 0; i < 1000 && clients[1].yield_trial.needs_all; i++)
		look_at_yields(&now, 1, 1.0);
	assert_int_equal(controls[1].yield, YIELD_NEEDED);
	assert_false(controls[1].flags & WEIR_CONTROL_COMPARES);
	/* Time-sliced clients never run beside each other. */
	statuses[1].flags = 0;
	for (unsigned i = 0; i < 1000; i++) {
		look_at_yields(&now, 1, 1.7);
		assert_int_equal(controls[1].yield, YIELD_NEEDED);
	}
}

/* Each would take what lower levels leave to the other for its own doing. */
static void test_clients_compare_one_after_the_other(void **state)
{
	struct tenant tenant = {.container = "server"};
	unsigned compared[3] = {0};
	uint64_t now = loop_now();

	(void)state;
	add_concurrent(0, 0, 0);
	statuses[0].outstanding = 1;
	for (int i = 1; i < 3; i++) {
		clients[i].tenant = &tenant;
		add_concurrent(i, 2, YIELD_MEASURED);
	}
	for (unsigned look = 0; look < 1000; look++) {
		statuses[2].yield_samples[!controls[2].yield] += YIELD_TRIAL_SAMPLES;
		look_at_yields(&now, 1, 1.0);
		unsigned n = 0;
		for (int i = 1; i < 3; i++) {
			bool compares = controls[i].flags & WEIR_CONTROL_COMPARES;
			compared[i] += compares;
			n += compares;
		}
		assert_true(n <= 1);
	}
	assert_true(compared[1] && compared[2]);
}

/* The agent says `whole` for a libweir that does not. */
static void test_older_clients_need_all(void **state)
{
	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 2, 1);
	clients[2].says_whole = false;
	uint64_t older = 1ull << add(2, 2, WEIR_BIT_NONE), newer = 1ull << clients[1].bit;
	set_words(older | newer);
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->whole == older && page(1)->whole == older && page(2)->whole == 0);
	set_words(newer);
	gpu_sweep(&gpu, loop_now());
	assert_true(page(0)->whole == 0 && page(1)->whole == 0);
}

static void test_sms_for_people(void **state)
{
	(void)state;
	add_concurrent(0, 0, 0);
	add_concurrent(1, 2, 1);
	assert_int_equal(sms_needed(&clients[1]), 0);
	assert_int_equal(sms_left(&clients[0]), 132);
	statuses[1].outstanding = 1;
	statuses[1].demand_sms = 12;
	page(0)->word = page(1)->word = 1ull << clients[1].bit;
	page(0)->sms = 12;
	assert_int_equal(sms_needed(&clients[1]), 12);
	assert_int_equal(sms_left(&clients[1]), 132);
	assert_int_equal(sms_left(&clients[0]), 120);
	page(0)->sms = 1000; /* hostile */
	assert_int_equal(sms_left(&clients[0]), 0);
	statuses[1].demand_sms = 1000;
	assert_int_equal(sms_needed(&clients[1]), 132);
	page(0)->sms = statuses[1].demand_sms = 0;
	page(0)->whole = 1ull << clients[1].bit;
	assert_int_equal(sms_needed(&clients[1]), 132);
	assert_int_equal(sms_left(&clients[0]), 0);
	page(0)->whole = 0;
	controls[0].flags &= ~(unsigned)WEIR_CONTROL_SPATIAL;
	assert_int_equal(sms_left(&clients[0]), 0); /* it waits for any demand */
	statuses[0].flags = 0;
	assert_true(sms_left(&clients[0]) == SMS_UNKNOWN);
	statuses[1].gpu_sms = 0; /* an older library */
	assert_true(sms_needed(&clients[1]) == SMS_UNKNOWN);
}

/* A client that has not come back yet cannot say what it has added. */
static void test_sums_outlive_a_restart(void **state)
{
	(void)state;
	add(0, 3, WEIR_BIT_NONE);
	gpu.reserved = 1 << 9;
	gpu.reserved_until = UINT64_MAX;
	page(0)->sms = 5;
	for (int i = 0; i < 3; i++)
		gpu_sweep(&gpu, loop_now());
	assert_int_equal(page(0)->sms, 5);
	gpu.reserved = 0;
	for (int i = 0; i < 3; i++)
		gpu_sweep(&gpu, loop_now());
	assert_int_equal(page(0)->sms, 0);
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
	gpu_share(&gpu);
	assert_true(word(0) == 0);
	statuses[64].level = 1;
	statuses[63].level = 2;
	statuses[64].outstanding = 1;
	gpu_share(&gpu);
	assert_true(word(0) == 1ull << 63 && word(1) == 0 && page(0)->whole == 1ull << 63);
	statuses[63].outstanding = 1;
	gpu_share(&gpu);
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
	gpu_share(&gpu);
	assert_true(word(0) == 0); /* its own gates of level 0 wait for that word */
	statuses[1].level = 1;
	gpu_share(&gpu);
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
	gpu_sweep(&gpu, now + GPU_CLAIM_NS);
	statuses[0].outstanding = 0;
	gpu_sweep(&gpu, now + 2 * GPU_CLAIM_NS);
	assert_true(word(0) == (a | b)); /* that was its work */
	gpu_sweep(&gpu, now + 3 * GPU_CLAIM_NS);
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

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define GPU_TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

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
	gpu_format_id(gpu.uuid, gpu.id);
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
		GPU_TEST(test_dead_client_needs_no_sms),
		GPU_TEST(test_changing_sms_are_kept),
		GPU_TEST(test_paused_client_keeps_its_part),
		GPU_TEST(test_who_may_rely_on_whole),
		GPU_TEST(test_slow_work_gets_the_whole_gpu),
		GPU_TEST(test_clients_compare_one_after_the_other),
		GPU_TEST(test_older_clients_need_all),
		GPU_TEST(test_sms_for_people),
		GPU_TEST(test_sums_outlive_a_restart),
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

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
