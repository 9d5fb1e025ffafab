/* The kubelet's checkpoint: which shares are free. */
#include "kubernetes/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RESOURCE "weir.dev/gpu-share"

static struct checkpoint checkpoint;
static char text[1 << 16];
static size_t at;

__attribute__((format(printf, 1, 2))) static void append(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	at += (size_t)vsnprintf(text + at, sizeof(text) - at, format, args);
	va_end(args);
	assert_true(at < sizeof(text));
}

static void append_ids(char gpu, unsigned from, unsigned end)
{
	for (unsigned i = from; i < end; i++)
		append("%s\"GPU-%c::%02u\"", i > from ? "," : "", gpu, i);
}

/* One container's devices. */
static void append_entry(const char *uid, const char *resource, char gpu, unsigned from,
			 unsigned end)
{
	append("{\"PodUID\":\"%s\",\"ContainerName\":\"c\",\"ResourceName\":\"%s\",\"DeviceIDs\":"
	       "{\"0\":[",
	       uid, resource);
	append_ids(gpu, from, end);
	append("]},\"AllocResp\":\"CgA=\"}");
}

static bool is_alive(void *userdata, const char *uid)
{
	(void)userdata;
	return strncmp(uid, "alive", 5) == 0;
}

static int parse(void)
{
	int r = checkpoint_parse(&checkpoint, text, at, RESOURCE, is_alive, NULL);

	at = 0;
	return r;
}

/* Two GPUs of 100 shares and one of 40. */
static void append_devices(void)
{
	append("],\"RegisteredDevices\":{\"example.org/x\":[\"GPU-z::00\"],\"" RESOURCE "\":[");
	append_ids('c', 0, 40);
	append(",");
	append_ids('b', 0, 100);
	append(",");
	append_ids('a', 0, 100);
	append("]}},\"Checksum\":7}");
}

static void counts_free_shares(void **state)
{
	(void)state;
	append("{\"Data\":{\"PodDeviceEntries\":[");
	append_entry("alive-1", RESOURCE, 'a', 0, 70);
	append(",");
	append_entry("alive-2", "example.org/x", 'b', 0, 50);
	append(",");
	append_entry("dead", RESOURCE, 'b', 0, 100);
	append(",");
	append_entry("alive-3", RESOURCE, 'c', 30, 50); /* ten are not offered any more */
	append_devices();
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n, 3);
	assert_string_equal(checkpoint.gpus[0].id, "GPU-a");
	assert_int_equal(checkpoint_free(&checkpoint.gpus[0]), 30);
	assert_int_equal(checkpoint_free(&checkpoint.gpus[1]), 100);
	assert_int_equal(checkpoint_free(&checkpoint.gpus[2]), 30);
	assert_int_equal(checkpoint_largest_free(&checkpoint), 100);
	assert_int_equal(checkpoint_free_gpus(&checkpoint), 1);
}

/* A GPU that is unhealthy is not registered. */
static void an_unhealthy_gpu_has_nothing_free(void **state)
{
	(void)state;
	append("{\"Data\":{\"PodDeviceEntries\":[");
	append_entry("alive-1", RESOURCE, 'd', 0, 10);
	append("],\"RegisteredDevices\":{}}}");
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n, 1);
	assert_int_equal(checkpoint_largest_free(&checkpoint), 0);
	assert_int_equal(checkpoint_free_gpus(&checkpoint), 0);
}

static void reads_only_what_it_knows(void **state)
{
	static const char *const wrong[] = {"", "[]", "{}", "{\"Data\":7}", "{\"Data\":"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		append("%s", wrong[i]);
		assert_int_equal(parse(), -EINVAL);
	}
	append("{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{\"" RESOURCE "\":["
	       "7,null,\"\",\"GPU-a\",\"GPU-a::\",\"GPU-a::100\",\"GPU-a::-1\",\"GPU-a::99\","
	       "\"GPU-%0100d::1\"]}}}",
	       0);
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n, 1);
	assert_int_equal(checkpoint_largest_free(&checkpoint), 1);
	append("{\"Data\":{\"RegisteredDevices\":{\"" RESOURCE "\":[\"GPU-0::0\"");
	for (unsigned i = 1; i < 100; i++)
		append(",\"GPU-%u::0\"", i);
	append("]}}}");
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n, CHECKPOINT_GPUS_MAX);
}

static void append_scattered(const char *uid, unsigned of_a, unsigned of_b)
{
	append("{\"PodUID\":\"%s\",\"ContainerName\":\"c\",\"ResourceName\":\"" RESOURCE
	       "\",\"DeviceIDs\":{\"0\":[",
	       uid);
	append_ids('a', 100 - of_a, 100);
	append("],\"1\":[");
	append_ids('b', 100 - of_b, 100);
	append("]}}");
}

/* A container with parts of two GPUs waits for room, and its own shares count as room. */
static void finds_containers_that_wait(void **state)
{
	(void)state;
	append("{\"Data\":{\"PodDeviceEntries\":[");
	append_entry("alive-1", RESOURCE, 'a', 0, 70);
	append(",");
	append_entry("alive-2", RESOURCE, 'b', 0, 60);
	append(",");
	append_scattered("dead", 30, 40);
	append(",");
	append_scattered("alive-3", 30, 20);
	append_devices();
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n_waiting, 1);
	assert_string_equal(checkpoint.waiting[0].uid, "alive-3");
	assert_int_equal(checkpoint.waiting[0].n, 50);
	assert_int_equal(checkpoint.waiting[0].own[0], 30);
	assert_int_equal(checkpoint.waiting[0].own[1], 20);
	assert_false(checkpoint_fits(&checkpoint, &checkpoint.waiting[0]));
	/* 20 of b are free, 20 its own: 10 more are missing. */
	checkpoint.gpus[1].taken[0] &= ~UINT64_C(0x3ff);
	assert_true(checkpoint_fits(&checkpoint, &checkpoint.waiting[0]));
	checkpoint.waiting[0].n = 150; /* no multiple of 100: never */
	assert_false(checkpoint_fits(&checkpoint, &checkpoint.waiting[0]));
}

static void whole_gpus_wait_for_whole_gpus(void **state)
{
	(void)state;
	append("{\"Data\":{\"PodDeviceEntries\":[");
	append_entry("alive-1", RESOURCE, 'c', 0, 10);
	append(",");
	append_scattered("alive-2", 99, 1);
	append(",");
	append_scattered("alive-whole", 100, 100);
	append_devices();
	assert_int_equal(parse(), 0);
	assert_int_equal(checkpoint.n_waiting, 1);
	checkpoint.gpus[0].taken[0] = checkpoint.gpus[0].taken[1] = 0;
	assert_string_equal(checkpoint.waiting[0].uid, "alive-2");
	checkpoint.waiting[0].own[0] = 0;
	assert_true(checkpoint_fits(&checkpoint, &checkpoint.waiting[0]));
	checkpoint.gpus[0].taken[0] = 1;
	assert_false(checkpoint_fits(&checkpoint, &checkpoint.waiting[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_free_shares),
		cmocka_unit_test(an_unhealthy_gpu_has_nothing_free),
		cmocka_unit_test(reads_only_what_it_knows),
		cmocka_unit_test(finds_containers_that_wait),
		cmocka_unit_test(whole_gpus_wait_for_whole_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
