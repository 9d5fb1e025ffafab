/* What an agent makes of the pods of its clients: level, weight, objective, limits, rates. */
#include "agent-fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pod's object has this text. */
#define say(member, text) snprintf(known_pod->member, sizeof(known_pod->member), "%s", text)

/* An agent that is not standalone, and a client in a pod that it does not know yet. */
static int set_up(void **state)
{
	int result = rig_set_up(state);

	agent_deinit(&agent);
	rig_start(false);
	next_identity = (struct container_identity){.in_pod = true,
						    .qos = CONTAINER_QOS_BURSTABLE,
						    .pod_uid = "u-1",
						    .container_id = "c0ffee",
						    .cgroup = "/kubepods"};
	return result;
}

static void end_pod(struct fake *fake)
{
	fake_leave(fake);
	free(known_pod);
	known_pod = NULL;
	tell_changed(&agent);
}

/* A client of a pod of level low, in a namespace that may raise it. */
static struct fake join_of_pod(void)
{
	known_pod = rig_pod("trusted", "low");
	known_pod->containers[0].share = 40;
	return fake_join(0);
}

static void expect_status(const char *text)
{
	cleanup(freep) char *status = rig_status();

	assert_non_null(strstr(status, text));
}

static void expect_level(struct fake *fake, uint8_t level)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	rig_pump();
	assert_int_equal(fake_receive(fake->fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_LEVEL);
	assert_int_equal(message.level.level, level);
	fake_take_level(fake, level, fds);
}

/* The level comes from the QoS class first, and from the annotation once the pod is known. */
static void test_level(void **state)
{
	(void)state;
	struct fake fake = fake_join(0);
	assert_int_equal(fake.level, 1);
	assert_string_equal(agent.tenants.all->pod, "u-1");

	known_pod = rig_pod("trusted", "critical");
	tell_changed(&agent);
	expect_level(&fake, 3);
	assert_string_equal(agent.tenants.all->pod, "web");
	assert_string_equal(agent.tenants.all->container, "main");

	say(priority, "low");
	tell_changed(&agent);
	expect_level(&fake, 0);
	end_pod(&fake);
}

/* A pod may lower its level anywhere, and raise it in raiseNamespaces only. */
static void test_level_raised_elsewhere(void **state)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	struct fake fake = join_of_pod();
	say(namespace_, "other");
	say(priority, "high");
	tell_changed(&agent);
	expect_level(&fake, 1);
	tell_changed(&agent);
	rig_pump();
	assert_int_equal(fake_receive(fake.fd, &message, fds), -EAGAIN);
	end_pod(&fake);
}

/* The weight may be less than the share, and more in raiseNamespaces. */
static void test_weight(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 40);
	say(weight, "7");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 7);
	say(weight, "90");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 90);
	say(namespace_, "other");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 40);
	say(namespace_, "trusted");
	say(weight, "7x");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 40);
	end_pod(&fake);
}

static void test_latency_objective(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	say(latency_slo, "5ms");
	tell_changed(&agent);
	assert_int_equal(fake.control->latency_slo, 5000000);
	say(latency_slo, "soon");
	tell_changed(&agent);
	assert_int_equal(fake.control->latency_slo, 0);
	expect_status("\"latencySloRefused\":\"soon\"");
	end_pod(&fake);
}

/* Any pod may have a compute limit. */
static void test_compute_limit(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	say(compute_limit, "30");
	tell_changed(&agent);
	assert_true(fake.control->flags & WEIR_CONTROL_SLICED);
	assert_true(fake.control->flags & WEIR_CONTROL_HOLDABLE);
	expect_status("\"computeLimit\":30,\"computeLimitBy\":\"gates\"");
	say(compute_limit, "much");
	tell_changed(&agent);
	assert_false(fake.control->flags & WEIR_CONTROL_SLICED);
	expect_status("\"computeLimitRefused\":\"much\"");
	end_pod(&fake);
}

/* Any pod may leave SMs to lower levels. */
static void test_yield(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	say(yield, "needed+25%");
	tell_changed(&agent);
	assert_int_equal(fake.control->yield, 26);
	expect_status("\"yield\":\"needed+25%\"");
	cleanup(freep) char *sliced = rig_status();
	assert_null(strstr(sliced, "smsNeeded"));
	atomic_store(&fake.status->flags, WEIR_STATUS_CONCURRENT);
	atomic_store(&fake.status->gpu_sms, 132);
	expect_status("\"smsNeeded\":0,\"smsLeft\":132,\"smsGiven\":132,\"leavesPart\":false");
	say(yield, "half");
	tell_changed(&agent);
	assert_int_equal(fake.control->yield, WEIR_YIELD_AUTO);
	expect_status("\"yieldRefused\":\"half\",\"yield\":\"auto\",\"yieldFound\":\"unknown\"");
	atomic_store(&fake.status->yield_found, WEIR_YIELDS_SMS);
	atomic_store(&fake.status->yield_tried, 1234);
	atomic_store(&fake.status->yield_lost, 1500000000);
	expect_status(
		"\"yieldFound\":\"sms\",\"yieldTriedLaunches\":1234,\"yieldLostSeconds\":1.5");
	say(yield, "whole");
	tell_changed(&agent);
	assert_int_equal(fake.control->yield, 0);
	expect_status("\"yield\":\"whole\",\"smsNeeded\"");
	end_pod(&fake);
}

/* Same-level clients leave a minimum rate to the pod up to its share. */
static void test_min_rate(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	say(min_rate, "0.8");
	tell_changed(&agent);
	assert_true(fake.control->flags & WEIR_CONTROL_TELL);
	expect_status("\"minRate\":0.8,\"minRateMissed\":false");
	say(min_rate, "80%");
	tell_changed(&agent);
	assert_false(fake.control->flags & WEIR_CONTROL_TELL);
	expect_status("\"minRateRefused\":\"80%\"");
	end_pod(&fake);
}

static void test_tenant_goes_with_its_pod(void **state)
{
	(void)state;
	struct fake fake = join_of_pod();
	fake_leave(&fake);
	say(uid, "u-2");
	tell_changed(&agent);
	assert_null(agent.tenants.all);
	free(known_pod);
	known_pod = NULL;
}

/* The API server sends a pod, and later the ids of its containers. */
static void test_unknown_containers_weigh_least(void **state)
{
	(void)state;
	struct fake fake = fake_join(0);
	const struct tenant *tenant = agent.tenants.all;
	assert_int_equal(fake.control->share, 1);

	known_pod = rig_pod("other", "low");
	known_pod->least_share = 20;
	known_pod->containers[0].share = 60;
	snprintf(known_pod->containers[0].id, sizeof(known_pod->containers[0].id), "decaf");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 20);
	/* Its own share may allow this. */
	say(weight, "50");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 20);
	assert_false(tenant->weight_refused);

	snprintf(known_pod->containers[0].id, sizeof(known_pod->containers[0].id), "c0ffee");
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 50);
	known_pod->containers[0].share = 20;
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 20);
	assert_true(tenant->weight_refused);
	known_pod->containers[0].share = 0; /* it asks for no share: it must outweigh nobody */
	*known_pod->weight = '\0';
	tell_changed(&agent);
	assert_int_equal(fake.control->share, 1);

	end_pod(&fake);
}

/* The API server forgets the pod at once, but the kubelet ends it only when it hears of that. */
static void test_pod_deleted_by_force(void **state)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	known_pod = rig_pod("trusted", "low");
	known_pod->containers[0].share = 40;
	say(latency_slo, "5ms");
	struct fake fake = fake_join(0);
	assert_int_equal(fake.level, 0);

	say(uid, "u-2");
	tell_changed(&agent);
	rig_pump();
	assert_int_equal(fake_receive(fake.fd, &message, fds), -EAGAIN);
	assert_int_equal(fake.control->level, 0);
	assert_int_equal(fake.control->share, 40);
	assert_int_equal(fake.control->latency_slo, 5000000);
	/* Another process of the pod. */
	struct fake late = fake_join(0);
	assert_int_equal(late.level, 0);

	fake_leave(&fake);
	fake_leave(&late);
	tell_changed(&agent);
	assert_null(agent.tenants.all);
	free(known_pod);
	known_pod = NULL;
}

#define POD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, rig_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		POD_TEST(test_level),
		POD_TEST(test_level_raised_elsewhere),
		POD_TEST(test_weight),
		POD_TEST(test_latency_objective),
		POD_TEST(test_compute_limit),
		POD_TEST(test_yield),
		POD_TEST(test_min_rate),
		POD_TEST(test_tenant_goes_with_its_pod),
		POD_TEST(test_unknown_containers_weigh_least),
		POD_TEST(test_pod_deleted_by_force),
	};

	return RUN_AGENT_TESTS(tests);
}
