/* Levels without Kubernetes, and addresses. */
#include "scheduler/level.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/address.h"

static char batch[] = "/batch*", service[] = "/system.slice/web.service";
static struct config_rule rules[] = {
	{.has_uid = true, .uid = 7, .cgroup = batch, .level = 3},
	{.cgroup = batch, .level = 0},
	{.cgroup = service, .level = 2},
	{.has_uid = true, .uid = 7, .level = 1},
};
static const struct config config = {.rules = rules, .n_rules = 4, .levels.by_default = 1};

static const struct {
	uid_t uid;
	const char *cgroup;
	uint8_t level;
	const char *reason;
} cases[] = {
	{7, "/batch/job", 3, "rule 1"},
	{8, "/batches", 0, "rule 2"},
	{8, "/system.slice/web.service", 2, "rule 3"},
	{8, "/system.slice/web.service/worker", 2, "rule 3"},
	{8, "/system.slice/web.service2", 1, "no rule fits"},
	{7, "/", 1, "rule 4"},
	{8, "", 1, "no rule fits"},
};

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct container_identity identity = {.uid = cases[i].uid};
		struct level_decision decision;

		snprintf(identity.cgroup, sizeof(identity.cgroup), "%s", cases[i].cgroup);
		level_by_rule(&decision, &config, &identity);
		assert_int_equal(decision.level, cases[i].level);
		assert_string_equal(decision.reason, cases[i].reason);
	}
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {"",         ":",        "9477",  "localhost:1",
					  "::1:9477", "1.2.3.4:", ":9477", "1.2.3.4:http",
					  "[]:1",     "[::1]"};
	struct sockaddr_storage address;
	socklen_t size;

	(void)state;
	assert_true(address_parse("0.0.0.0:9477", &address, &size));
	assert_int_equal(address.ss_family, AF_INET);
	assert_true(address_parse("[::1]:80", &address, &size));
	assert_int_equal(address.ss_family, AF_INET6);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(address_parse(bad[i], &address, &size));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
