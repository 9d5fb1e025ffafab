/* Device ids, and the list of GPUs from NVML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libgen.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "inventory.h"
#include "weir/base.h"

#define GPU_A "GPU-aaaaaaaa-0000-0000-0000-000000000001"
#define GPU_B "GPU-bbbbbbbb-0000-0000-0000-000000000002"

static void an_id_leads_back_to_its_share(void **state)
{
	struct inventory inventory = {.node.n_gpus = 2, .gpus = {{.uuid = GPU_A}, {.uuid = GPU_B}}};
	char id[DEVICE_ID_MAX];
	unsigned gpu, share;

	(void)state;
	inventory_id(id, &inventory.gpus[1], 7);
	assert_string_equal(id, GPU_B "::07");
	assert_true(inventory_find(&inventory, id, &gpu, &share));
	assert_int_equal(gpu, 1);
	assert_int_equal(share, 7);
	assert_true(inventory_find(&inventory, GPU_A "::99", &gpu, &share));
	assert_int_equal(gpu, 0);
	assert_int_equal(share, 99);
}

static void refuses_other_ids(void **state)
{
	static const char *const ids[] = {
		"",
		"::00",
		GPU_A,
		GPU_A "::",
		GPU_A "::0",
		GPU_A "::100",
		GPU_A "::0x",
		GPU_A "::-1",
		GPU_A ":00",
		GPU_A "0::00",
		"GPU-cccccccc-0000-0000-0000-000000000003::00",
	};
	const struct inventory inventory = {.node.n_gpus = 1, .gpus = {{.uuid = GPU_A}}};
	unsigned gpu, share;

	(void)state;
	for (size_t i = 0; i < countof(ids); i++)
		assert_false(inventory_find(&inventory, ids[i], &gpu, &share));
}

struct fixture {
	struct loop loop;
	struct config config;
	struct inventory inventory;
	char gpus[64];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->gpus, "/tmp/weir-gpus-XXXXXX");
	int fd = mkstemp(f->gpus);
	assert_true(fd >= 0);
	close(fd);
	setenv("FAKE_NVML", f->gpus, 1);
	assert_int_equal(loop_init(&f->loop), 0);
	assert_int_equal(config_init(&f->config), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	inventory_deinit(&f->inventory);
	config_deinit(&f->config);
	loop_deinit(&f->loop);
	unlink(f->gpus);
	free(f);
	return 0;
}

static void ignore(struct inventory *inventory)
{
	(void)inventory;
}

static void open_inventory(struct fixture *f, const char *gpus)
{
	char self[512], *nvml = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *file = fopen(f->gpus, "we");

	assert_non_null(file);
	fputs(gpus, file);
	fclose(file);
	assert_true(n > 0);
	self[n] = '\0';
	assert_true(asprintf(&nvml, "%s/../lib/libfake-nvml.so", dirname(self)) > 0);
	assert_int_equal(inventory_init(&f->inventory, &f->loop, &f->config, nvml, ignore, NULL),
			 0);
}

static void lists_what_nvml_has(void **state)
{
	struct fixture *f = *state;

	open_inventory(f, GPU_A " 3 2048 ok\n" GPU_B " 1 1024 ok\n");
	assert_int_equal(f->inventory.node.n_gpus, 2);
	const struct gpu *gpu = &f->inventory.gpus[0];
	assert_string_equal(gpu->uuid, GPU_A);
	assert_int_equal(gpu->minor, 3);
	assert_int_equal(gpu->memory, 2048ull << 20);
	assert_int_equal(gpu->numa, -1);
	assert_true(gpu->healthy);
}

static void ignores_gpus_it_cannot_share(void **state)
{
	struct fixture *f = *state;

	open_inventory(f, GPU_A " 0 2048 mig\n" GPU_B " 1 1024 ok\nGPU-lost 2 1024 lost\n");
	assert_int_equal(f->inventory.node.n_gpus, 1);
	assert_string_equal(f->inventory.gpus[0].uuid, GPU_B);
}

static void stops_at_as_many_as_it_can_hold(void **state)
{
	struct fixture *f = *state;
	char gpus[8192] = "";

	for (int i = 0; i < 64; i++)
		snprintf(gpus + strlen(gpus), sizeof(gpus) - strlen(gpus), "GPU-%d %d 1 ok\n", i,
			 i);
	open_inventory(f, gpus);
	assert_int_equal(f->inventory.node.n_gpus, GPUS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_leads_back_to_its_share),
		cmocka_unit_test(refuses_other_ids),
		cmocka_unit_test_setup_teardown(lists_what_nvml_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ignores_gpus_it_cannot_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stops_at_as_many_as_it_can_hold, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
