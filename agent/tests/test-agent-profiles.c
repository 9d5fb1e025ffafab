/* Profiles: what one client teaches, the next one of its namespace reads, and nobody else. */
#include "agent-fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compile-fixture.h"
#include "profile/profile-command.h"

#include "weir/transform.h"

static struct fake join(uid_t uid)
{
	struct weir_hello message = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};

	next_identity.uid = uid;
	message.flags = WEIR_HELLO_TAKES_PROFILES;
	assert_int_equal(weir_message_send(fake.fd, &message, sizeof(message), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	return fake;
}

/* A process of a pod of this namespace. */
static struct fake join_pod(const char *namespace_)
{
	static struct pod pod;

	pod = (struct pod){.qos = CONTAINER_QOS_BURSTABLE};
	snprintf(pod.namespace_, sizeof(pod.namespace_), "%s", namespace_);
	snprintf(pod.uid, sizeof(pod.uid), "uid-%s", namespace_);
	snprintf(pod.cgroup_uid, sizeof(pod.cgroup_uid), "%s", pod.uid);
	next_identity = (struct container_identity){.in_pod = true};
	snprintf(next_identity.pod_uid, sizeof(next_identity.pod_uid), "%s", pod.uid);
	snprintf(next_identity.container_id, sizeof(next_identity.container_id), "c");
	known_pod = &pod;
	tell_changed(&agent);
	return join(0);
}

static void ask(const struct fake *fake, const char *kernel)
{
	struct weir_compile message = {.id = 7};
	char ptx[128];
	int size = snprintf(ptx, sizeof(ptx),
			    ".version 7.0\n.target sm_75\n.address_size 64\n"
			    ".visible .entry %s()\n{\n\tret;\n}\n",
			    kernel);
	int file = fixture_file(kernel, ptx, (size_t)size, 90, 1u << WEIR_PERSISTENT);

	weir_header_init(&message.header, WEIR_COMPILE, sizeof(message));
	assert_int_equal(weir_message_send(fake->fd, &message, sizeof(message), &file, 1), 0);
	close(file);
}

/* PROFILE messages with @n entries, then COMPILED. The last PROFILE is in @out. */
static void expect_profiles(const struct fake *fake, unsigned n, struct weir_profile_message *out)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX], r;
	unsigned entries = 0, messages = 0;

	for (;;) {
		rig_wait((r = fake_receive(fake->fd, &message, fds)) != -EAGAIN);
		assert_int_equal(r, 0);
		if (message.header.type == WEIR_COMPILED)
			break;
		assert_int_equal(message.header.type, WEIR_PROFILE);
		assert_int_equal(message.profile.id, 7);
		entries += message.profile.n;
		messages++;
		*out = message.profile;
	}
	assert_int_equal(message.compiled.status, WEIR_COMPILE_OK);
	close(fds[0]);
	assert_true(messages);
	assert_int_equal(entries, n);
}

static void teach(const struct fake *fake, const struct weir_profile_message *profile,
		  uint32_t grid, uint64_t native)
{
	struct weir_learned message = {
		.profile = {.geometry = {{grid, 1, 1}, {64, 1, 1}, 0, 132, 100, 0},
			    .native = native}};

	weir_header_init(&message.header, WEIR_LEARNED, sizeof(message));
	memcpy(message.kernel, profile->kernel, sizeof(message.kernel));
	assert_int_equal(weir_message_send(fake->fd, &message, sizeof(message), NULL, 0), 0);
	rig_pump();
}

static void the_next_process_reads_what_one_taught(void **state)
{
	struct weir_profile_message profile;
	static char answer[65536];

	(void)state;
	struct fake first = join(1), same = join(1), other = join(2), old = fake_join(1);
	ask(&first, "k");
	expect_profiles(&first, 0, &profile);
	for (uint32_t grid = 1; grid <= WEIR_PROFILE_ENTRIES + 1; grid++)
		teach(&first, &profile, grid, 5000000);
	ask(&same, "k");
	expect_profiles(&same, WEIR_PROFILE_ENTRIES + 1, &profile);
	assert_int_equal(profile.n, 1);
	assert_int_equal(profile.entries[0].native, 5000000);
	ask(&same, "another");
	expect_profiles(&same, 0, &profile);
	ask(&other, "k");
	expect_profiles(&other, 0, &profile);

	/* A library that does not know them hears of none. */
	union weir_message message;
	int fds[WEIR_FDS_MAX], r;
	ask(&old, "k");
	rig_wait((r = fake_receive(old.fd, &message, fds)) != -EAGAIN);
	assert_int_equal(message.header.type, WEIR_COMPILED);
	close(fds[0]);

	rig_fetch("/metrics", answer, sizeof(answer));
	assert_non_null(strstr(answer, "weir_profiles 5\n"));
	assert_non_null(strstr(answer, "weir_profile_hits_total 1\n"));
	assert_non_null(strstr(answer, "weir_profile_misses_total 3\n"));
	assert_non_null(strstr(answer, "weir_profile_learned_total 5\n"));
	fake_leave(&first);
	fake_leave(&same);
	fake_leave(&other);
	fake_leave(&old);
}

static void nonsense_is_refused_and_the_client_stays(void **state)
{
	struct weir_profile_message profile;

	(void)state;
	struct fake fake = join(1);
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	teach(&fake, &profile, 0, 5000000);
	teach(&fake, &profile, 1, UINT64_MAX);
	assert_int_equal(agent.profiles.profiles.n, 0);
	assert_int_equal(agent.profiles.profiles.counters.refused, 2);
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	fake_leave(&fake);
}

static void profiles_outlive_the_agent(void **state)
{
	struct weir_profile_message profile;

	(void)state;
	struct fake fake = join(1);
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	teach(&fake, &profile, 1, 5000000);
	fake_leave(&fake);
	agent_deinit(&agent);
	rig_start(true);
	fake = join(1);
	ask(&fake, "k");
	expect_profiles(&fake, 1, &profile);
	fake_leave(&fake);
}

static void pods_share_them_by_namespace(void **state)
{
	struct weir_profile_message profile;

	(void)state;
	agent_deinit(&agent);
	rig_start(false);
	struct fake fake = join_pod("one");
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	teach(&fake, &profile, 1, 5000000);
	fake_leave(&fake);
	fake = join_pod("two");
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	fake_leave(&fake);
	fake = join_pod("one");
	ask(&fake, "k");
	expect_profiles(&fake, 1, &profile);
	fake_leave(&fake);
	known_pod = NULL;
}

/* Caller frees. */
static char *command(const char *format, const char *argument)
{
	char request[CONTROL_REQUEST_MAX];
	uint64_t later;

	int n = snprintf(request, sizeof(request), format, argument);
	assert_in_range(n, 1, sizeof(request) - 1);
	char *answer = commands_answer(&agent.commands, request, (size_t)n, &later);
	assert_non_null(answer);
	return answer;
}

/* Of the test itself, whose processes all have one command line. */
static void teach_program(const struct fake *fake, uint32_t yields)
{
	struct weir_learned message = {.profile = {.geometry = {{1, 1, 1}, {1, 1, 1}, 0, 132, 1, 0},
						   .native = 40000,
						   .yields = yields}};

	weir_header_init(&message.header, WEIR_LEARNED, sizeof(message));
	assert_int_equal(weir_message_send(fake->fd, &message, sizeof(message), NULL, 0), 0);
	rig_pump();
}

static uint32_t known_of(uid_t uid)
{
	struct fake fake = join(uid);
	uint32_t known = fake.control->yield_known;

	fake_leave(&fake);
	return known;
}

static void the_next_process_of_a_program_knows_what_does(void **state)
{
	(void)state;
	struct fake fake = join(1);
	assert_int_equal(fake.control->yield_known, WEIR_YIELDS_UNKNOWN);
	teach_program(&fake, WEIR_YIELDS_SMS);
	assert_int_equal(known_of(1), WEIR_YIELDS_SMS);
	assert_int_equal(known_of(2), WEIR_YIELDS_UNKNOWN);
	char *list = command("{\"command\": \"profiles\"%s}", "");
	assert_non_null(strstr(list, "\"yields\":\"sms\""));
	free(list);
	teach_program(&fake, WEIR_YIELDS_WHOLE);
	assert_int_equal(known_of(1), WEIR_YIELDS_WHOLE);
	teach_program(&fake, WEIR_YIELDS_WHOLE + 1);
	assert_int_equal(known_of(1), WEIR_YIELDS_WHOLE);
	fake_leave(&fake);
	agent_deinit(&agent);
	rig_start(true);
	assert_int_equal(known_of(1), WEIR_YIELDS_WHOLE);
}

static void an_administrator_moves_them(void **state)
{
	struct weir_profile_message profile;

	(void)state;
	struct fake fake = join(1), other = join(2);
	ask(&fake, "k");
	expect_profiles(&fake, 0, &profile);
	teach(&fake, &profile, 1, 5000000);
	char *list = command("{\"command\": \"profiles\"%s}", "");
	cJSON *json = cJSON_Parse(list);
	char *one = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "profiles")->child);
	assert_non_null(strstr(one, "\"namespace\":\"uid:1\""));
	char *none = command("{\"command\": \"profiles\", \"namespace\": \"%s\"}", "uid:2");
	assert_string_equal(none, "{\"profiles\":[]}");
	char *forgot =
		command("{\"command\": \"forget-profiles\", \"namespace\": \"%s\"}", "uid:1");
	assert_string_equal(forgot, "{\"forgotten\":1}");
	char *done = command("{\"command\": \"import-profile\", \"namespace\": \"*\", "
			     "\"profile\": %s}",
			     one);
	assert_string_equal(done, "{}");
	char *wrong = command("{\"command\": \"import-profile\", \"profile\": %s}", "{}");
	assert_non_null(strstr(wrong, "error"));
	ask(&other, "k");
	expect_profiles(&other, 1, &profile);
	fake_leave(&fake);
	fake_leave(&other);
	cJSON_Delete(json);
	char *texts[] = {list, one, none, forgot, done, wrong};
	for (size_t i = 0; i < countof(texts); i++)
		free(texts[i]);
}

static void long_lists_come_in_pages(void **state)
{
	struct weir_profile values = {.geometry = {{1, 1, 1}, {64, 1, 1}, 0, 132, 100, 0},
				      .native = 1};
	unsigned pages = 0, n = 0;
	double after = 0;

	(void)state;
	for (unsigned i = 0; i < 2 * PROFILE_COMMAND_PAGE + 1; i++) {
		struct digest kernel = {{(uint8_t)i, (uint8_t)(i >> 8)}};
		struct profile_key key;
		assert_true(profile_key_make(&key, "a", "", &kernel));
		assert_int_equal(profiles_put(&agent.profiles.profiles, &key, &values, 1), 0);
	}
	for (bool more = true; more; pages++) {
		char number[32];
		snprintf(number, sizeof(number), "%.0f", after);
		char *text = command("{\"command\": \"profiles\", \"after\": %s}", number);
		cJSON *json = cJSON_Parse(text);
		const cJSON *next = cJSON_GetObjectItem(json, "next");
		n += (unsigned)cJSON_GetArraySize(cJSON_GetObjectItem(json, "profiles"));
		more = next != NULL;
		after = more ? next->valuedouble : 0;
		cJSON_Delete(json);
		free(text);
	}
	assert_int_equal(n, 2 * PROFILE_COMMAND_PAGE + 1);
	assert_int_equal(pages, 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		AGENT_TEST(the_next_process_reads_what_one_taught),
		AGENT_TEST(nonsense_is_refused_and_the_client_stays),
		AGENT_TEST(profiles_outlive_the_agent),
		AGENT_TEST(pods_share_them_by_namespace),
		AGENT_TEST(the_next_process_of_a_program_knows_what_does),
		AGENT_TEST(an_administrator_moves_them),
		AGENT_TEST(long_lists_come_in_pages),
	};

	return RUN_AGENT_TESTS(tests);
}
