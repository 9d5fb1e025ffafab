/* What libweir learns from the ioctls of libcuda. */
#include "inside.h"
#include "shim/ioctl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "weir/rm.h"

#define CLIENT    0xc1d00001u
#define DEVICE    0x5c000001u
#define SUBDEVICE 0x5c000002u
#define FD        77

static void make(uint32_t class, uint32_t parent, uint32_t object, const void *params)
{
	struct rm_alloc made = {.client = CLIENT,
				.parent = parent,
				.object = object,
				.class = class,
				.params = (uintptr_t)params};

	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_ALLOC, made), &made);
}

static void make_short(uint32_t class, uint32_t parent, uint32_t object, const void *params)
{
	struct rm_alloc_short made = {.client = CLIENT,
				      .parent = parent,
				      .object = object,
				      .class = class,
				      .params = (uintptr_t)params};

	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_ALLOC, made), &made);
}

static void drop(uint32_t object)
{
	struct rm_free gone = {.client = CLIENT, .parent = DEVICE, .object = object};

	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_FREE, gone), &gone);
}

static void make_group(uint32_t group, uint32_t engine)
{
	struct rm_channel_group_params params = {.engine = engine};

	make(RM_CLASS_CHANNEL_GROUP, DEVICE, group, &params);
}

/* The only group of @context; 0: it has none. */
static uint32_t group_of(const void *context, struct channel_group *group)
{
	size_t at = 0;
	int fd;

	if (!channel_groups_next(context, &at, group, &fd))
		return 0;
	assert_int_equal(fd, FD);
	struct channel_group second;
	assert_false(channel_groups_next(context, &at, &second, &fd));
	return group->group;
}

static int context, other;

static int begin(void **state)
{
	(void)state;
	make(RM_CLASS_SUBDEVICE, DEVICE, SUBDEVICE, NULL);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	drop(CLIENT);
	return 0;
}

static void test_compute_group(void **state)
{
	struct channel_group group;
	uint32_t before = channel_groups_changes();

	(void)state;
	make_group(100, RM_ENGINE_COMPUTE);
	make_group(200, 11);
	make(0xc86f, 100, 101, NULL);
	make(0xc86f, 200, 201, NULL);
	make(0xc96f, 100, 102, NULL);
	make(0x9067, 100, 103, NULL); /* no channel */
	assert_int_equal(group_of(&context, &group), 0);
	channel_groups_bind(&context);
	assert_int_equal(group_of(&context, &group), 100);
	assert_int_equal(group.client, CLIENT);
	assert_int_equal(group.subdevice, SUBDEVICE);
	assert_int_equal(group.n_channels, 2);
	assert_int_equal(group.channels[0], 101);
	assert_int_equal(group.channels[1], 102);
	assert_true(channel_groups_changes() != before);
	/* It is bound already. */
	channel_groups_bind(&other);
	assert_int_equal(group_of(&other, &group), 0);
	drop(100);
	assert_int_equal(group_of(&context, &group), 0);
}

static void test_two_contexts(void **state)
{
	struct channel_group group;

	(void)state;
	make_group(100, RM_ENGINE_COMPUTE);
	make(0xc86f, 100, 101, NULL);
	channel_groups_bind(&context);
	make_group(300, RM_ENGINE_COMPUTE);
	make(0xc86f, 300, 301, NULL);
	channel_groups_bind(&other);
	assert_int_equal(group_of(&context, &group), 100);
	assert_int_equal(group_of(&other, &group), 300);
	drop(DEVICE);
	assert_int_equal(group_of(&context, &group), 0);
	assert_int_equal(group_of(&other, &group), 0);
}

/* An older driver's ioctl. */
static void test_short_form(void **state)
{
	struct rm_channel_group_params params = {.engine = RM_ENGINE_COMPUTE};
	struct channel_group group;

	(void)state;
	make_short(RM_CLASS_CHANNEL_GROUP, DEVICE, 100, &params);
	make_short(0xc36f, 100, 101, NULL);
	channel_groups_bind(&context);
	assert_int_equal(group_of(&context, &group), 100);
}

/* Refused, of another size, of another type, or without parameters. */
static void test_not_looked_at(void **state)
{
	struct rm_channel_group_params params = {.engine = RM_ENGINE_COMPUTE};
	struct rm_alloc made = {.client = CLIENT,
				.parent = DEVICE,
				.object = 100,
				.class = RM_CLASS_CHANNEL_GROUP,
				.params = (uintptr_t)&params,
				.status = 0x57};
	struct channel_group group;

	(void)state;
	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_ALLOC, made), &made);
	made.status = RM_OK;
	channel_groups_watch(FD, _IOWR(RM_IOCTL_TYPE, RM_IOCTL_ALLOC, char[40]), &made);
	channel_groups_watch(FD, _IOWR('G', RM_IOCTL_ALLOC, made), &made);
	made.params_size = 8;
	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_ALLOC, made), &made);
	made.params = 0;
	channel_groups_watch(FD, RM_REQUEST(RM_IOCTL_ALLOC, made), &made);
	make(0xc86f, 100, 101, NULL);
	channel_groups_bind(&context);
	assert_int_equal(group_of(&context, &group), 0);
}

static void test_more_channels_than_room(void **state)
{
	struct channel_group group;

	(void)state;
	make_group(100, RM_ENGINE_COMPUTE);
	for (uint32_t i = 0; i < CHANNEL_GROUP_CHANNELS + 5; i++)
		make(0xc86f, 100, 1000 + i, NULL);
	channel_groups_bind(&context);
	assert_int_equal(group_of(&context, &group), 100);
	assert_int_equal(group.n_channels, CHANNEL_GROUP_CHANNELS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_compute_group, begin, finish),
		cmocka_unit_test_setup_teardown(test_two_contexts, begin, finish),
		cmocka_unit_test_setup_teardown(test_short_form, begin, finish),
		cmocka_unit_test_setup_teardown(test_not_looked_at, begin, finish),
		cmocka_unit_test_setup_teardown(test_more_channels_than_room, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
