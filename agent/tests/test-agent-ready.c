/* /readyz: when the agent is ready, and the reason when it is not. */
#include <stdio.h>
#include <string.h>

#include "common/server.h"
#include "agent-fixture.h"

static char answer[8192];

static void expect(const char *status, const char *text)
{
	rig_fetch("/readyz", answer, sizeof(answer));
	assert_non_null(strstr(answer, status));
	assert_non_null(strstr(answer, text));
}

static void no_gpu(void **state)
{
	(void)state;
	expect("503", "not ready: no NVML, and no client with a GPU yet");
	struct fake fake = fake_join(1);
	expect("200 OK", "ok\n");
	fake_leave(&fake);
	expect("200 OK", "ok\n");
}

static int in_cluster(void **state)
{
	int r = rig_set_up(state);

	agent_deinit(&agent);
	rig_start(false);
	return r;
}

static void no_pods(void **state)
{
	static struct pod pod;

	(void)state;
	struct fake fake = fake_join(1);
	expect("503", "not ready: the API server has not told");
	/* The API server answers, and goes away again. */
	known_pod = &pod;
	expect("200 OK", "ok\n");
	tell_changed(&agent);
	known_pod = NULL;
	expect("200 OK", "ok, but the API server is away");
	fake_leave(&fake);
}

static void no_daemon(void **state)
{
	(void)state;
	struct fake fake = fake_join(1);
	agent.config.mps.required = true;
	expect("200 OK", "ok\n");
	free(agent.config.mps.program);
	agent.config.mps.program = strdup("/nowhere/control");
	mps_want(&agent.mps, agent.gpus.all->id, true);
	expect("503", "not ready: an MPS daemon does not answer");
	agent.config.mps.required = false;
	expect("200 OK", "ok\n");
	fake_leave(&fake);
}

static void no_socket(void **state)
{
	(void)state;
	server_deinit(&agent.sessions.server);
	expect("503", "not ready: no socket for clients");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AGENT_TEST(no_gpu),
		cmocka_unit_test_setup_teardown(no_pods, in_cluster, rig_tear_down),
		AGENT_TEST(no_daemon),
		AGENT_TEST(no_socket),
	};

	return RUN_AGENT_TESTS(tests);
}
