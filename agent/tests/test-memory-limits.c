/* Limits of memory: of pods, of rules, of shares; and the node's mark. */
#include "memory-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/units.h"

static void test_quantities(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0: refused */
	} cases[] = {
		{"8Gi", 8ull << 30},
		{"512Mi", 512ull << 20},
		{"1.5Gi", 3ull << 29},
		{"2G", 2000000000},
		{"2097152", 2 << 20},
		{"1Pi", 1ull << 50},
		{"1Mi", 0},
		{"2Pi", 0},
		{"0", 0},
		{"", 0},
		{"Gi", 0},
		{"8GB", 0},
		{"8 Gi", 0},
		{"-8Gi", 0},
		{"+8Gi", 0},
		{"8.Gi", 0},
		{".5Gi", 0},
		{"1e9", 0},
		{"0x8Gi", 0},
		{"99999999999999999999999999999Gi", 0},
		{"1.0000000000000000000000000001Gi", 0},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		uint64_t bytes = 0;
		bool good = memory_parse(cases[i].text, &bytes);
		assert_int_equal(good, cases[i].bytes != 0);
		assert_true(bytes == cases[i].bytes);
	}
}

/* The pod's processes may start while there is no agent. */
static void test_pod_is_marked_before_its_processes(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	known_pod = pod;
	snprintf(pod->memory, sizeof(pod->memory), "two");
	tell_changed(&agent);
	assert_false(is_marked());
	snprintf(pod->memory, sizeof(pod->memory), "48Mi");
	tell_changed(&agent);
	assert_true(is_marked());
	assert_true(agent.decider.limited);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

static void test_lease_on_the_mark(void **state)
{
	char mark[128];

	(void)state;
	snprintf(mark, sizeof(mark), "%s/" WEIR_LIMITED_NAME, rig_folder);
	memories_mark(agent.memories.mark);
	int fd = open(mark, O_RDONLY | O_CLOEXEC);
	assert_int_equal(lease(fd, F_WRLCK), 0);
	alarm(30);
	memories_mark(agent.memories.mark);
	alarm(0);
	close(fd);
	assert_true(is_marked());
	remove_mark();
}

/* A client with next_identity. */
static struct fake fake_join_pod(void)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};

	assert_int_equal(weir_message_send(fake.fd, &hello, sizeof(hello), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	return fake;
}

static void test_rule_is_marked_before_its_processes(void **state)
{
	(void)state;
	decider_mark_limits(&agent.decider);
	assert_false(is_marked());
	agent.config.rules[1].memory = 1u << 30;
	decider_mark_limits(&agent.decider);
	assert_true(is_marked());
	remove_mark();
}

/* An edited annotation applies at once. A wrong one, and the pod's disappearance, leave the
 * previous limit. */
static void test_limit_is_live(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	struct view view;

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	snprintf(pod->uid, sizeof(pod->uid), "uid");
	snprintf(pod->memory, sizeof(pod->memory), "8Gi");
	known_pod = pod;
	next_identity = (struct container_identity){.in_pod = true, .pod_uid = "uid"};
	struct fake fake = fake_join_pod();
	view = view_of_next();
	assert_true(view.limit->limit == 8ull << 30);
	assert_true(fake.control->memory_limit == 8ull << 30);
	snprintf(pod->memory, sizeof(pod->memory), "2Gi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);
	snprintf(pod->memory, sizeof(pod->memory), "two");
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);
	known_pod = NULL;
	tell_changed(&agent);
	assert_true(view.limit->limit == 2ull << 30);

	/* An agent that knows no pods yet leaves it, too. */
	fake_leave(&fake);
	agent_deinit(&agent);
	rig_start(false);
	struct view after = view_of_next();
	assert_true(after.limit->limit == 2ull << 30);
	known_pod = pod;
	*pod->memory = '\0';
	fake = fake_join_pod();
	assert_true(after.limit->limit == 0);
	fake_leave(&fake);
	view_leave(&view);
	view_leave(&after);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

/* Without news of the pod the answer is REFUSED. */
static void expect_no(const char *uid)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	snprintf(next_identity.pod_uid, sizeof(next_identity.pod_uid), "%s", uid);
	int fd = view_ask();
	rig_wait(agent.sessions.refused[WEIR_REFUSED_INTERNAL] > 0);
	assert_int_equal(fake_receive(fd, &message, fds), 0);
	assert_int_equal(message.header.type, WEIR_REFUSED);
	assert_int_equal(message.refused.flags, WEIR_REFUSED_LIMITED);
	close(fd);
}

/* A container that is faster than the news of its pod gets no slot before its limit is known, even
 * if the client has closed its half of the connection. */
static void test_limit_is_waited_for(void **state)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	snprintf(pod->uid, sizeof(pod->uid), "uid");
	snprintf(pod->memory, sizeof(pod->memory), "8Gi");
	next_identity = (struct container_identity){.in_pod = true, .pod_uid = "uid"};
	unsigned hurried = rig_hurried;
	int fd = view_ask(), late = view_ask();
	shutdown(fd, SHUT_WR);
	rig_pump();
	assert_true(rig_hurried > hurried);
	assert_int_equal(fake_receive(fd, &message, fds), -EAGAIN);
	close(late); /* hangs up */
	rig_pump();
	assert_int_equal(agent.sessions.n, 1);

	known_pod = pod;
	tell_changed(&agent);
	struct view view = view_read(fd);
	assert_true(view.limit->limit == 8ull << 30);
	assert_int_equal(agent.sessions.n, 0);

	expect_no("other");
	view_leave(&view);
	known_pod = NULL;
	free(pod);

	/* The next agent keeps the node marked although it knows no pods yet. */
	agent_deinit(&agent);
	rig_start(false);
	expect_no("third");
	remove_mark();
}

/* Processes with memory need not be connected. */
static void test_new_default_without_connections(void **state)
{
	char path[64];

	(void)state;
	struct view view = view_of(9);
	assert_int_equal(agent.sessions.n, 0);
	assert_int_equal(view.limit->limit, 0);
	snprintf(path, sizeof(path), "%s/f.yaml", rig_folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("memoryDefault: 8Gi\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(agent_follow(&agent, path), 0);
	assert_true(view.limit->limit == 8ull << 30);
	unlink(path);
	view_leave(&view);
	remove_mark();
}

static struct pod *pod_with_share(const char *namespace, uint32_t share)
{
	struct pod *pod = rig_pod(namespace, "");

	pod->least_share = pod->containers[0].share = share;
	return pod;
}

static struct view start_with_shares(struct pod *pod)
{
	agent_deinit(&agent);
	rig_start(false);
	agent.config.gpu.memory.kind = MEMORY_SHARE;
	known_pod = pod;
	next_identity = (struct container_identity){
		.in_pod = true, .pod_uid = "u-1", .container_id = "c0ffee"};
	struct view first = view_of_next();
	view_leave(&first);
	agent.gpus.all->memory = 1000ull << 20;
	agent.tenants.all->memory_known = false;
	return view_of_next();
}

/* The share is the limit; an annotation raises it in raiseNamespaces only. */
static void test_limit_of_share(void **state)
{
	struct pod *pod = pod_with_share("other", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	assert_true(view.limit->limit == 300ull << 20);
	snprintf(pod->memory, sizeof(pod->memory), "100Mi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 100ull << 20);
	snprintf(pod->memory, sizeof(pod->memory), "1Pi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 300ull << 20);
	snprintf(pod->namespace_, sizeof(pod->namespace_), "trusted");
	snprintf(pod->memory, sizeof(pod->memory), "400Mi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 400ull << 20);
	/* A whole GPU has no limit. */
	*pod->memory = '\0';
	pod->containers[0].share = 100;
	tell_changed(&agent);
	assert_true(view.limit->limit == 0);
	view_leave(&view);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

/* What is raised above the share must fit beside the other containers' limits. */
static void test_raised_limits_do_not_overcommit(void **state)
{
	struct pod *pod = pod_with_share("trusted", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	snprintf(pod->memory, sizeof(pod->memory), "800Mi");
	tell_changed(&agent);
	assert_true(view.limit->limit == 800ull << 20);
	/* Another container of the pod, which also asks for 800 MiB: it gets its share. */
	next_identity.container_id[0] = 'd';
	struct view other = view_of_next();
	assert_true(other.limit->limit == 300ull << 20);
	/* And the first gets what that leaves. */
	assert_true(view.limit->limit == 700ull << 20);
	agent.config.memory_overcommit = 200;
	tell_changed(&agent);
	assert_true(view.limit->limit == 800ull << 20 && other.limit->limit == 800ull << 20);
	view_leave(&view);
	view_leave(&other);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

/* By annotation, else by configuration; live. */
static void test_waiting_is_told_by_the_page(void **state)
{
	struct pod *pod = pod_with_share("other", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	assert_int_equal(view.limit->wait_ms, 0);
	strcpy(pod->memory_full, "wait");
	tell_changed(&agent);
	assert_int_equal(view.limit->wait_ms, 30000);
	strcpy(pod->memory_full, "fail");
	agent.config.memory_full = MEMORY_FULL_WAIT;
	tell_changed(&agent);
	assert_int_equal(view.limit->wait_ms, 0);
	*pod->memory_full = '\0';
	tell_changed(&agent);
	assert_int_equal(view.limit->wait_ms, 30000);
	view_leave(&view);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

static void test_waits_are_counted(void **state)
{
	struct weir_memory_waits message = {.bytes = 4096ull << 20};
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct view view = view_of(1000);

	(void)state;
	memcpy(message.gpu, hello.gpu, sizeof(message.gpu));
	weir_header_init(&message.header, WEIR_MEMORY_WAITS, sizeof(message));
	int fd = fake_connect();
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), NULL, 0), 0);
	rig_pump();
	const struct memory_waits *waits = &agent.tenants.all->usages->memory_waits;
	assert_int_equal(waits->n, 1);
	assert_int_equal(waits->waiting, 1);
	close(fd);
	rig_pump();
	assert_int_equal(waits->n, 1);
	assert_int_equal(waits->waiting, 0);
	view_leave(&view);
}

/* Until the container is known, its share is the smallest of its pod. */
static void test_least_share(void **state)
{
	struct pod *pod = pod_with_share("other", 30);
	struct view view = start_with_shares(pod);

	(void)state;
	view_leave(&view);
	snprintf(pod->containers[0].id, sizeof(pod->containers[0].id), "decaf");
	pod->least_share = 20;
	agent.tenants.all->memory_known = false;
	view = view_of_next();
	assert_true(view.limit->limit == 200ull << 20);
	view_leave(&view);
	known_pod = NULL;
	free(pod);
	remove_mark();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantities),
		AGENT_TEST(test_pod_is_marked_before_its_processes),
		AGENT_TEST(test_lease_on_the_mark),
		AGENT_TEST(test_rule_is_marked_before_its_processes),
		AGENT_TEST(test_limit_is_live),
		AGENT_TEST(test_limit_is_waited_for),
		AGENT_TEST(test_new_default_without_connections),
		AGENT_TEST(test_limit_of_share),
		AGENT_TEST(test_least_share),
		AGENT_TEST(test_raised_limits_do_not_overcommit),
		AGENT_TEST(test_waiting_is_told_by_the_page),
		AGENT_TEST(test_waits_are_counted),
	};

	return RUN_AGENT_TESTS(tests);
}
