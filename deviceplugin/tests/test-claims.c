/* Claims: what the API server says about one, whether it fits, and how it is remembered. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "dra/claim-cdi.h"
#include "dra/claim-parse.h"
#include "dra/kept.h"
#include "dra/ledger.h"
#include "dra/offer.h"
#include "dra/slice.h"
#include "inventory.h"
#include "weir/base.h"

#define GIB (1ull << 30)

/* A claim of the pod p1 with these results, on the node n. */
#define CLAIM(results)                                                             \
	"{\"metadata\":{\"uid\":\"u1\",\"namespace\":\"team\",\"name\":\"mine\"}," \
	"\"status\":{\"reservedFor\":[{\"resource\":\"pods\",\"uid\":\"p1\"}],"    \
	"\"allocation\":{\"devices\":{\"results\":[" results "]}}}}"
#define RESULT(request, device, rest)                                              \
	"{\"request\":\"" request "\",\"driver\":\"gpu.weir.dev\",\"pool\":\"n\"," \
	"\"device\":\"" device "\"" rest "}"
#define CONSUMED(shares, memory)                                                                   \
	",\"shareID\":\"s1\",\"consumedCapacity\":{\"shares\":\"" shares "\",\"memory\":\"" memory \
	"\"}"

struct fixture {
	struct config config;
	struct inventory inventory;
	struct claims held;
	char error[DRA_ERROR_MAX];
	char folder[32];
};

static int set_up(void **state)
{
	static const char text[] = "dra: {enabled: true, nodeName: n}\n"
				   "gpus: [{index: 1, shares: 40}, {index: 2, shares: 100}]\n";
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(config_parse(&f->config, "f", text, strlen(text), f->error, 256), 0);
	for (int i = 0; i < 3; i++) {
		struct gpu *gpu = &f->inventory.gpus[i];
		*gpu = (struct gpu){.uuid = "GPU-A0",
				    .product = "NVIDIA H200",
				    .architecture = "Hopper",
				    .driver = "570.06.10",
				    .index = i,
				    .numa = i,
				    .memory = 10 * GIB,
				    .healthy = true};
		gpu->uuid[5] = (char)('0' + i);
	}
	f->inventory.node.n_gpus = 3;
	snprintf(f->folder, sizeof(f->folder), "%s", "/tmp/weir-claims-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	free(f->config.dra.state_dir);
	f->config.dra.state_dir = strdup(f->folder);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/claims.json", f->folder);
	unlink(path);
	rmdir(f->folder);
	claims_deinit(&f->held);
	config_deinit(&f->config);
	free(f);
	return 0;
}

static struct claim *parse(struct fixture *f, const char *text)
{
	return claim_parse(text, strlen(text), "u1", "n", f->error);
}

static void reads_what_was_allocated(void **state)
{
	cleanup(freep) struct claim *claim =
		parse(*state, CLAIM(RESULT("gpu/small", "gpu-a0", CONSUMED("30", "8Gi"))));

	assert_non_null(claim);
	assert_string_equal(claim->uid, "u1");
	assert_string_equal(claim->namespace_, "team");
	assert_string_equal(claim->name, "mine");
	assert_string_equal(claim->pod, "p1");
	assert_int_equal(claim->n, 1);
	assert_string_equal(claim->devices[0].request, "gpu/small");
	assert_string_equal(claim->devices[0].device, "gpu-a0");
	assert_string_equal(claim->devices[0].share_id, "s1");
	assert_int_equal(claim->devices[0].shares, 30);
	assert_int_equal(claim->devices[0].memory, 8 * GIB);
}

static void ignores_other_drivers_and_nodes(void **state)
{
	cleanup(freep) struct claim *claim = parse(
		*state, CLAIM("{\"request\":\"nic\",\"driver\":\"net\",\"pool\":\"n\","
			      "\"device\":\"eth0\"},"
			      "{\"request\":\"far\",\"driver\":\"gpu.weir.dev\",\"pool\":\"m\","
			      "\"device\":\"gpu-a0\"}," RESULT("gpu", "gpu-a1", "")));

	assert_non_null(claim);
	assert_int_equal(claim->n, 1);
	assert_string_equal(claim->devices[0].device, "gpu-a1");
}

static void says_what_is_wrong_with_a_claim(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "replaced"},
		{"[]", "replaced"},
		{"{\"metadata\":{\"uid\":\"u2\"}}", "replaced"},
		{"{\"metadata\":{\"uid\":\"u1\"},\"status\":{}}", "no device of gpu.weir.dev"},
		{CLAIM(""), "no device of gpu.weir.dev on node n"},
		{CLAIM(RESULT("gpu", "gpu-a0", CONSUMED("0", "8Gi"))), "0 shares of gpu-a0"},
		{CLAIM(RESULT("gpu", "gpu-a0", CONSUMED("101", "8Gi"))), "101 shares of gpu-a0"},
		{CLAIM(RESULT("gpu", "gpu-a0", CONSUMED("1e1", "8Gi"))), "expected 1 to 100"},
		{CLAIM(RESULT("gpu", "gpu-a0", CONSUMED("10", "-8Gi"))), "-8Gi memory of gpu-a0"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < countof(cases); i++) {
		assert_null(parse(f, cases[i].text));
		assert_non_null(strstr(f->error, cases[i].error));
	}
}

static void knows_whether_a_claim_lives(void **state)
{
	static const char text[] = CLAIM(RESULT("gpu", "gpu-a0", ""));

	(void)state;
	assert_true(claim_lives(200, text, strlen(text), "u1", "n"));
	assert_false(claim_lives(200, text, strlen(text), "u2", "n"));
	assert_false(claim_lives(200, text, strlen(text), "u1", "m"));
	assert_false(claim_lives(404, "", 0, "u1", "n"));
}

static struct claim *claim_of(const char *uid, const char *device, uint32_t shares, uint64_t memory)
{
	struct claim *claim = calloc(1, sizeof(*claim));

	assert_non_null(claim);
	snprintf(claim->uid, sizeof(claim->uid), "%s", uid);
	snprintf(claim->namespace_, sizeof(claim->namespace_), "%s", "team");
	snprintf(claim->name, sizeof(claim->name), "%s", uid);
	claim->n = 1;
	snprintf(claim->devices[0].device, sizeof(claim->devices[0].device), "%s", device);
	claim->devices[0].shares = shares;
	claim->devices[0].memory = memory;
	return claim;
}

/* Prepares the claim if it fits. */
static bool fits(struct fixture *f, const char *uid, const char *device, uint32_t shares,
		 uint64_t memory)
{
	struct claim *claim = claim_of(uid, device, shares, memory);
	bool good = offer_take(&f->config, &f->inventory, &f->held, claim, f->error);

	if (good)
		assert_int_equal(claims_add(&f->held, claim), 0);
	else
		free(claim);
	return good;
}

static void never_oversells_a_gpu(void **state)
{
	struct fixture *f = *state;

	assert_true(fits(f, "a", "gpu-a0", 60, 2 * GIB));
	assert_false(fits(f, "b", "gpu-a0", 41, GIB));
	assert_non_null(strstr(f->error, "41 shares and 1024 MiB do not fit on gpu-a0"));
	assert_false(fits(f, "b", "gpu-a0", 10, 9 * GIB));
	assert_true(fits(f, "b", "gpu-a0", 40, 8 * GIB));
	assert_false(fits(f, "c", "gpu-a0", 1, 2 << 20));
	assert_int_equal(offer_held(&f->held, &f->inventory.gpus[0]), 100);
	assert_true(claims_remove(&f->held, "a"));
	assert_true(fits(f, "c", "gpu-a0", 60, 2 * GIB));
}

/* GPU 1 has 40 shares for the device plugin, and GPU 2 all. */
static void leaves_the_resource_its_shares(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(offer_of(&f->config, &f->inventory.gpus[1]).shares, 60);
	assert_int_equal(offer_of(&f->config, &f->inventory.gpus[1]).memory, 6 * GIB);
	assert_false(fits(f, "a", "gpu-a1", 61, GIB));
	assert_false(fits(f, "a", "gpu-a1", 10, 6 * GIB + (2 << 20)));
	assert_true(fits(f, "a", "gpu-a1", 60, 6 * GIB));
	assert_false(fits(f, "b", "gpu-a2", 1, 2 << 20));
	assert_non_null(strstr(f->error, "GPU-A2 is not offered to claims"));
}

/* Pods have 60 shares of GPU 1, of which the resource has 40. */
static void leaves_pods_what_they_have(void **state)
{
	static char ids[101][DEVICE_ID_MAX];
	static char *pointers[101];
	static char name[] = "weir.dev/gpu-share", other[] = "other.dev/gpu";
	Dra__ContainerDevices devices[] = {DRA__CONTAINER_DEVICES__INIT,
					   DRA__CONTAINER_DEVICES__INIT};
	Dra__ContainerDevices *device_list[] = {&devices[0], &devices[1]};
	Dra__ContainerResources container = DRA__CONTAINER_RESOURCES__INIT, *containers[1];
	Dra__PodResources pod = DRA__POD_RESOURCES__INIT, *pods[1] = {&pod};
	Dra__ListPodResourcesResponse list = DRA__LIST_POD_RESOURCES_RESPONSE__INIT;
	struct fixture *f = *state;
	struct gpu *gpu = &f->inventory.gpus[1];

	for (unsigned i = 0; i < 60; i++) {
		inventory_id(ids[i], gpu, i);
		pointers[i] = ids[i];
	}
	devices[0].resource_name = name;
	devices[0].device_ids = devices[1].device_ids = pointers;
	devices[0].n_device_ids = devices[1].n_device_ids = 60;
	devices[1].resource_name = other;
	containers[0] = &container;
	container.devices = device_list;
	container.n_devices = 2;
	pod.containers = containers;
	pod.n_containers = 1;
	list.pod_resources = pods;
	list.n_pod_resources = 1;

	assert_true(kept_count(&f->inventory, &f->config, &list));
	assert_false(kept_count(&f->inventory, &f->config, &list));
	assert_int_equal(gpu->kept, 20);
	assert_int_equal(offer_of(&f->config, gpu).shares, 40);
	assert_int_equal(offer_of(&f->config, gpu).memory, 4 * GIB);
	assert_false(fits(f, "a", "gpu-a1", 41, GIB));
	list.n_pod_resources = 0;
	assert_true(kept_count(&f->inventory, &f->config, &list));
	assert_int_equal(gpu->kept, 0);
	assert_true(fits(f, "a", "gpu-a1", 41, GIB));
}

static void refuses_sick_and_unknown_gpus(void **state)
{
	struct fixture *f = *state;

	f->inventory.gpus[0].healthy = false;
	assert_false(fits(f, "a", "gpu-a0", 10, GIB));
	assert_non_null(strstr(f->error, "GPU-A0 is unhealthy"));
	assert_false(fits(f, "a", "gpu-a9", 10, GIB));
	assert_non_null(strstr(f->error, "no such GPU on this node: gpu-a9"));
}

static void a_claim_without_capacities_has_all(void **state)
{
	struct fixture *f = *state;

	assert_true(fits(f, "a", "gpu-a0", 0, 0));
	assert_true(offer_is_whole(&f->held.list[0]->devices[0]));
	assert_int_equal(f->held.list[0]->devices[0].memory, 10 * GIB);
	/* A part that is all that claims may have is no whole GPU. */
	assert_true(fits(f, "b", "gpu-a1", 0, 0));
	assert_false(offer_is_whole(&f->held.list[1]->devices[0]));
}

static void a_claim_has_one_part_or_whole_gpus(void **state)
{
	struct fixture *f = *state;
	cleanup(freep) struct claim *claim = claim_of("a", "gpu-a0", 30, GIB);

	f->config.gpus[0].values.shares = 0;
	claim->n = 2;
	claim->devices[1] = claim->devices[0];
	snprintf(claim->devices[1].device, sizeof(claim->devices[1].device), "%s", "gpu-a1");
	assert_false(offer_take(&f->config, &f->inventory, &f->held, claim, f->error));
	assert_non_null(strstr(f->error, "a part of one GPU, or whole GPUs"));
	claim->devices[0].shares = claim->devices[1].shares = 100;
	assert_true(offer_take(&f->config, &f->inventory, &f->held, claim, f->error));
}

static void remembers_claims_in_a_file(void **state)
{
	struct fixture *f = *state;
	struct ledger ledger, again;

	assert_int_equal(ledger_init(&ledger, &f->config), 0);
	assert_int_equal(ledger.claims.n, 0);
	assert_int_equal(ledger_add(&ledger, claim_of("a", "gpu-a0", 30, 150 * GIB + 1)), 0);
	assert_int_equal(ledger_add(&ledger, claim_of("b", "gpu-a0", 70, GIB)), 0);
	assert_int_equal(ledger_remove(&ledger, "b"), 0);
	assert_int_equal(ledger_remove(&ledger, "never"), 0);

	assert_int_equal(ledger_init(&again, &f->config), 0);
	assert_int_equal(again.claims.n, 1);
	assert_memory_equal(claims_find(&again.claims, "a"), claims_find(&ledger.claims, "a"),
			    sizeof(struct claim));
	assert_ptr_equal(claims_named(&again.claims, "team", "a"), again.claims.list[0]);
	assert_null(claims_named(&again.claims, "other", "a"));
	ledger_deinit(&again);
	ledger_deinit(&ledger);
}

static void changes_nothing_that_it_cannot_write(void **state)
{
	struct fixture *f = *state;
	struct ledger ledger;

	assert_int_equal(ledger_init(&ledger, &f->config), 0);
	assert_int_equal(ledger_add(&ledger, claim_of("a", "gpu-a0", 30, GIB)), 0);
	free(ledger.path);
	ledger.path = strdup("/nowhere/claims.json");
	assert_int_equal(ledger_add(&ledger, claim_of("b", "gpu-a0", 30, GIB)), -ENOENT);
	assert_int_equal(ledger_remove(&ledger, "a"), -ENOENT);
	assert_int_equal(ledger.claims.n, 1);
	assert_non_null(claims_find(&ledger.claims, "a"));
	ledger_deinit(&ledger);
}

static void starts_without_a_torn_file(void **state)
{
	static const char *const texts[] = {
		"", "{", "{\"claims\":{}}", "{\"claims\":[{\"uid\":\"a\"}]}",
		("{\"claims\":[{\"uid\":\"a\",\"namespace\":\"n\",\"name\":\"a\",\"pod\":\"\","
		 "\"devices\":[{\"request\":\"\",\"device\":\"\",\"shareID\":\"\","
		 "\"shares\":\"101\",\"memory\":\"0\"}]}]}")};
	struct fixture *f = *state;

	for (size_t i = 0; i < countof(texts); i++) {
		struct ledger ledger;
		char path[64];
		snprintf(path, sizeof(path), "%s/claims.json", f->folder);
		FILE *file = fopen(path, "we");
		assert_non_null(file);
		fputs(texts[i], file);
		fclose(file);
		assert_int_equal(ledger_init(&ledger, &f->config), 0);
		assert_int_equal(ledger.claims.n, 0);
		ledger_deinit(&ledger);
	}
}

static void describes_gpus_to_the_scheduler(void **state)
{
	struct fixture *f = *state;
	cleanup(freep) char *text = slice_format(&f->config, &f->inventory, 1, "node-uid");
	static const char *const parts[] = {
		"\"name\":\"n-gpu.weir.dev-1\"",
		"\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"node-uid\"",
		"\"driver\":\"gpu.weir.dev\",\"nodeName\":\"n\"",
		"\"resourceSliceCount\":3",
		"\"name\":\"gpu-a1\",\"allowMultipleAllocations\":true",
		"\"model\":{\"string\":\"NVIDIA H200\"}",
		"\"uuid\":{\"string\":\"GPU-A1\"}",
		"\"architecture\":{\"string\":\"Hopper\"}",
		"\"mode\":{\"string\":\"timeslice\"}",
		"\"driverVersion\":{\"version\":\"570.6.10\"}",
		"\"memoryMiB\":{\"int\":10240}",
		("\"shares\":{\"requestPolicy\":{\"validRange\":{\"min\":\"1\",\"max\":\"60\","
		 "\"step\":\"1\"},\"default\":\"60\"},\"value\":\"60\"}"),
		"{\"min\":\"2Mi\",\"max\":\"6144Mi\",\"step\":\"2Mi\"},\"default\":\"6144Mi\"",
	};

	assert_non_null(text);
	for (size_t i = 0; i < countof(parts); i++)
		if (!strstr(text, parts[i]))
			fail_msg("%s lacks %s", text, parts[i]);
}

static void leaves_out_what_claims_cannot_have(void **state)
{
	struct fixture *f = *state;

	f->inventory.gpus[0].healthy = false;
	for (unsigned at = 0; at < 3; at += 2) {
		cleanup(freep) char *text = slice_format(&f->config, &f->inventory, at, "u");
		assert_non_null(strstr(text, "\"devices\":[]"));
		assert_non_null(strstr(text, "\"resourceSliceCount\":3"));
	}
}

static void names_the_devices_of_a_container(void **state)
{
	struct fixture *f = *state;
	char ids[2][CLAIM_CDI_MAX];

	claim_cdi_ids(ids, &f->config, &f->inventory.gpus[0], false);
	assert_string_equal(ids[0], "weir.dev/gpu=GPU-A0");
	assert_string_equal(ids[1], "weir.dev/claim=GPU-A0");
	claim_cdi_ids(ids, &f->config, &f->inventory.gpus[0], true);
	assert_string_equal(ids[1], "weir.dev/claim=GPU-A0-whole");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_what_was_allocated),
		TEST(ignores_other_drivers_and_nodes),
		TEST(says_what_is_wrong_with_a_claim),
		TEST(knows_whether_a_claim_lives),
		TEST(never_oversells_a_gpu),
		TEST(leaves_the_resource_its_shares),
		TEST(leaves_pods_what_they_have),
		TEST(refuses_sick_and_unknown_gpus),
		TEST(a_claim_without_capacities_has_all),
		TEST(a_claim_has_one_part_or_whole_gpus),
		TEST(remembers_claims_in_a_file),
		TEST(changes_nothing_that_it_cannot_write),
		TEST(starts_without_a_torn_file),
		TEST(describes_gpus_to_the_scheduler),
		TEST(leaves_out_what_claims_cannot_have),
		TEST(names_the_devices_of_a_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
