/* Tenants come, stay for a while after their last client, and are forgotten. */
#include "scheduler/tenants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct container_identity in_pod(const char *pod, const char *container)
{
	struct container_identity identity = {.in_pod = true};

	snprintf(identity.pod_uid, sizeof(identity.pod_uid), "%s", pod);
	snprintf(identity.container_id, sizeof(identity.container_id), "%s", container);
	return identity;
}

static struct tenant *enter(struct tenants *tenants, struct container_identity identity,
			    bool expect_fresh)
{
	struct tenant *tenant;
	unsigned before = HASH_COUNT(tenants->all);

	assert_int_equal(tenants_enter(tenants, &identity, &tenant), 0);
	assert_int_equal(HASH_COUNT(tenants->all), before + expect_fresh);
	return tenant;
}

static void test_identity(void **state)
{
	struct tenants tenants = {0};

	(void)state;
	struct tenant *a = enter(&tenants, in_pod("p", "0123456789abcdef"), true);
	assert_ptr_equal(enter(&tenants, in_pod("p", "0123456789abcdef"), false), a);
	assert_string_equal(a->container, "0123456789ab");
	assert_ptr_not_equal(enter(&tenants, in_pod("p", "c2"), true), a);
	struct container_identity user = {.uid = 5, .cgroup = "/user"}, other = {.uid = 6};
	snprintf(other.cgroup, sizeof(other.cgroup), "%s", "/user");
	a = enter(&tenants, user, true);
	assert_string_equal(a->container, "uid 5 /user");
	assert_ptr_not_equal(enter(&tenants, other, true), a);
	tenants_deinit(&tenants);
}

static void test_idle(void **state)
{
	struct tenants tenants = {0};

	(void)state;
	struct tenant *a = enter(&tenants, in_pod("p", "1"), true);
	tenants_leave(&tenants, a, 1000);
	tenants_prune(&tenants, 1000 + TENANTS_IDLE_NS);
	assert_ptr_equal(enter(&tenants, in_pod("p", "1"), false), a);
	tenants_prune(&tenants, 9 * TENANTS_IDLE_NS);
	tenants_leave(&tenants, a, 1000);
	tenants_prune(&tenants, 1001 + TENANTS_IDLE_NS);
	assert_null(tenants.all);
	tenants_deinit(&tenants);
}

static void test_idle_limit(void **state)
{
	struct tenants tenants = {0};
	char name[16];

	(void)state;
	for (int i = 0; i < 3 * TENANTS_IDLE_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		tenants_leave(&tenants, enter(&tenants, in_pod("p", name), true), 0);
	}
	assert_int_equal(HASH_COUNT(tenants.all), TENANTS_IDLE_MAX);
	/* The oldest went. */
	enter(&tenants, in_pod("p", name), false);
	enter(&tenants, in_pod("p", "0"), true);
	tenants_deinit(&tenants);
}

/* A restarted container has another id and the same name: its counters go on. */
static void test_heir(void **state)
{
	struct tenants tenants = {0};
	struct gpu gpu = {0};
	struct usage *usage;

	(void)state;
	struct tenant *old = enter(&tenants, in_pod("p", "1"), true);
	struct tenant *heir = enter(&tenants, in_pod("p", "2"), true);
	snprintf(old->container, sizeof(old->container), "%s", "main");
	snprintf(heir->container, sizeof(heir->container), "%s", "main");
	usage = tenant_usage(old, &gpu);
	usage->account.total[ACCOUNT_LAUNCHES] = 5;
	usage = tenant_usage(heir, &gpu);
	usage->account.total[ACCOUNT_LAUNCHES] = 2;
	tenants_leave(&tenants, old, 0);
	tenants_forget(&tenants, old);
	assert_int_equal(usage->account.total[ACCOUNT_LAUNCHES], 7);
	tenants_deinit(&tenants);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_limit),
		cmocka_unit_test(test_heir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
